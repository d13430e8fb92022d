"""Recall of the span leg by the number of spans that the graph is searched for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

from benchmarks.servers.entries import Corpus
from benchmarks.servers.latency import fill, merge_segments, recall, wait_for_merges
from hybrid_search.backends.server import reach
from hybrid_search.backends.server.backend import ServerBackend

SEARCHED = (500, 1000, 2000, 2500, 3000, 4000)


def measure(
    backend: ServerBackend, corpus: Corpus, index: str, phrases: Sequence[str]
) -> dict[str, Any]:
    """Return recall by the number of spans, in the segments as written and merged to one."""
    fill(backend, corpus, index)
    wait_for_merges(backend, index)
    rows = {
        f"{searched}": figures
        for searched, figures in _measure_recall(backend, corpus, index, phrases)
    }
    merge_segments(backend, index)
    rows |= {
        f"{searched}, one segment": figures
        for searched, figures in _measure_recall(backend, corpus, index, phrases)
    }
    backend.drop_index(index)
    return {
        "passages": len(corpus.entries),
        "covering spans": sum(entry.spans for entry in corpus.entries),
        "searched": rows,
    }


def _measure_recall(
    backend: ServerBackend, corpus: Corpus, index: str, phrases: Sequence[str]
) -> Iterator[tuple[int, dict[str, float]]]:
    for searched in SEARCHED:
        with mock.patch.object(reach, "SEARCHED_SPANS", (searched, searched)):
            yield searched, recall(backend, corpus, index, phrases)
