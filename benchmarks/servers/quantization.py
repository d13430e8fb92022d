"""Bytes and recall of each way to store vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.servers.entries import Corpus
from benchmarks.servers.latency import (
    count_stored_bytes,
    fill,
    merge_segments,
    recall,
    wait_for_merges,
)
from hybrid_search.backends.index_options import QUANTIZATIONS
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.errors import UsageError


def measure(
    backend: ServerBackend, corpus: Corpus, index: str, phrases: Sequence[str]
) -> dict[str, Any]:
    """Return bytes per 1,000 words and recall of the span leg, for each quantization of the server.

    Bytes are those of an index as written, and merged to one segment.
    """
    rows: dict[str, Any] = {}
    for quantization in QUANTIZATIONS:
        quantized_backend = ServerBackend(
            backend.server, replace(backend.options, quantization=quantization)
        )
        try:
            fill(quantized_backend, corpus, index)
        except UsageError as error:
            rows[quantization] = {"absent": str(error)}
            continue
        wait_for_merges(quantized_backend, index)
        as_written = count_stored_bytes(quantized_backend, index)
        merge_segments(quantized_backend, index)
        merged = count_stored_bytes(quantized_backend, index)
        rows[quantization] = {
            "bytes per 1,000 words": round(1000 * merged / corpus.words),
            "as written": round(1000 * as_written / corpus.words),
            **recall(quantized_backend, corpus, index, phrases),
        }
        quantized_backend.drop_index(index)
    return {"passages": len(corpus.entries), "words": corpus.words, "quantizations": rows}
