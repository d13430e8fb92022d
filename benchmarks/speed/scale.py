"""Measure what docs/scale.md states about large sources.

The cost of reading other shards' documents, the rate of one process when texts are encoded
elsewhere, and how far a plan is from what was measured.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from benchmarks.speed import elsewhere
from hybrid_search import connect
from hybrid_search.ingest.shards import Shard
from hybrid_search.ingest.sources import files
from hybrid_search.ingest.types import SourceLine

SAMPLES = (136, 1000)
"""Documents from the beginning of the source that a plan is made of."""

LAST = Shard(999_999, 1_000_000)
"""A shard with nearly no documents: all its work is to see that they belong to other shards."""

RUNS = 3

FEW = 1000
"""Calls whose vectors are kept in memory: 0.3 GB."""


def measure(source: Path, calls: int, size: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of shards, of one process without its encoder, and of plans.

    On the first `calls` documents.

    Plans are made of samples, and compared with the index of all, whose `size` was measured.
    """
    lines = list(islice(files.read([str(source)]), calls))
    return {
        "calls": len(lines),
        "others' documents": _measure_other_shards(lines),
        "encoded elsewhere": elsewhere.measure(lines[:FEW]),
        "plans": {str(count): _compare_plan(lines[:count], size) for count in SAMPLES},
    }


def _measure_other_shards(lines: Sequence[SourceLine]) -> dict[str, float]:
    """Return the best of some runs over an uncompressed file that the system has in memory."""
    with NamedTemporaryFile(suffix=".jsonl") as file:
        file.writelines(line.data.rstrip(b"\n") + b"\n" for line in lines)
        file.flush()
        size = file.tell()
        seconds = min(_time_reading(file.name) for _ in range(RUNS))
    return {
        "MB/s": round(size / seconds / 1e6, 1),
        "microseconds a document": round(1e6 * seconds / len(lines), 1),
    }


def _time_reading(path: str) -> float:
    started_at = time.perf_counter()
    for line in files.read([path]):
        LAST.owns(line)
    return time.perf_counter() - started_at


def _compare_plan(lines: Sequence[SourceLine], size: Mapping[str, Any]) -> dict[str, float]:
    """Compare an embedded index as planned with one as measured."""
    with connect("memory:") as client:
        sample = client.plan_lines(lines).sample
    planned = 1000 * sample.embedded_bytes / sample.words
    return {
        "documents": sample.documents,
        "words a document": round(sample.words / sample.documents, 1),
        "bytes per 1,000 words": round(planned),
        "bytes per 1,000 words, times the measured ones": round(
            planned / size["bytes per 1,000 words"], 3
        ),
        "bytes a document, times the measured ones": round(
            sample.embedded_bytes / sample.documents * size["documents"] / size["bytes"], 3
        ),
    }
