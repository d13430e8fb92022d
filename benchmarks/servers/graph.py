"""How many spans the graph has to be searched for, and what scattering its vectors does: recall of the span leg for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

from benchmarks.servers.entries import Corpus
from benchmarks.servers.latency import fill, recall
from hybrid_search.backends.server import bodies, documents
from hybrid_search.backends.server.backend import ServerBackend

SEARCHED = (500, 1000, 2000, 3000, 4000)
SCATTERS = {"as they are": 0.0, "scattered": documents.SCATTER}


def measure(backend: ServerBackend, corpus: Corpus, index: str, phrases: Sequence[str]) -> dict[str, Any]:
    """Recall by the number of spans searched for, with the covering spans' vectors as they are and scattered."""
    rows: dict[str, Any] = {}
    for name, scatter in SCATTERS.items():
        with mock.patch.object(documents, "SCATTER", scatter):
            fill(backend, corpus, index)
        for searched in SEARCHED:
            with mock.patch.object(bodies, "SEARCHED", searched):
                rows[f"{searched} of {name}"] = recall(backend, corpus, index, phrases)
        backend.drop(index)
    return {"passages": len(corpus.entries), "covering spans": sum(each.spans for each in corpus.entries), "searched": rows}
