"""Compare the span leg's index with an exhaustive search of every span of every passage.

Reported are recall@10, and how often the best passage is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.collection import Collection
from benchmarks.quality.vectors import cosines_with_many
from hybrid_search.backends import open_backend
from hybrid_search.backends.types import Request
from hybrid_search.client import Client
from hybrid_search.encoder.base import Encoder
from hybrid_search.search import phrase_vector
from hybrid_search.search.query import WINDOW
from hybrid_search.text.types import Floats, WordCodes

DEPTH = 10


def measure(collection: Collection, phrases: Sequence[str]) -> dict[str, Any]:
    """Measure recall over `phrases`, without a filter."""
    encoder = collection.model.encoder
    return compare(collection.client, collection.store, collection.task.name, encoder, phrases)


def compare(
    client: Client, store: Path, index: str, encoder: Encoder, phrases: Sequence[str]
) -> dict[str, Any]:
    """Compare what the span leg of an embedded index finds with an exhaustive search."""
    vectors = np.array([phrase_vector.query_vector(encoder, text) for text in phrases])
    passages, exact = find_best(store, index, vectors)
    recall, same, methods = [], [], set()
    for text, vector, best in zip(phrases, vectors, exact, strict=True):
        found = client.backend.find(index, Request(text, vector, WINDOW, lexical=False))
        first = [passage.key for passage in found.passages[:DEPTH]]
        recall.append(len(set(first) & set(best)) / DEPTH)
        same.append(first[0] == best[0])
        methods.add(found.method)
    return {
        "phrases": len(phrases),
        "passages": passages,
        "recall@10": round(float(np.mean(recall)), 4),
        "same best passage": round(float(np.mean(same)), 4),
        "method": sorted(methods),
    }


def find_best(store: Path, index: str, vectors: Floats) -> tuple[int, list[list[int]]]:
    """Return how many passages an index has, and the `DEPTH` best for each vector, best first."""
    numbers, cosines = search_exhaustively(store, index, vectors)
    order = np.argsort(-cosines, axis=0, kind="stable")[:DEPTH]
    return len(numbers), numbers[order.T].tolist()


def search_exhaustively(
    store: Path, index: str, vectors: Floats
) -> tuple[NDArray[np.int64], Floats]:
    """Return passage numbers, and the best cosine of their spans with each phrase.

    The cosines are float32 ``[passages, phrases]``.
    """
    numbers, best = [], []
    with closing(open_backend(f"embedded:{store}")) as backend:
        for scanned in backend.scan_codes(index):
            numbers.append(scanned.key)
            best.append(best_span_cosines(scanned.tokens, vectors))
    return np.array(numbers), np.array(best, dtype=np.float32)


def best_span_cosines(coded: WordCodes, vectors: Floats) -> Floats:
    """Return a passage's best span cosine with each of `vectors`, float32 ``[phrases]``."""
    if not len(coded.norms):
        return np.full(len(vectors), -1.0, dtype=np.float32)
    best: Floats = cosines_with_many(vectors, coded).max(axis=0)
    return best
