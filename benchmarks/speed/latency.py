"""Time warm queries, in all and by leg."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybrid_search import encoder
from hybrid_search.backends.types import Request
from hybrid_search.client import Client
from hybrid_search.search import phrase_vector
from hybrid_search.search.query import WINDOW


def measure(client: Client, index: str, phrases: Sequence[str]) -> dict[str, Any]:
    """Return p50 and p95 in milliseconds over `phrases`, each asked once after a warm-up.

    Nothing else may run meanwhile.
    """
    usual = encoder.truncate_encoder(encoder.load())  # as the client cuts its vectors
    vectors = {text: phrase_vector.query_vector(usual, text) for text in phrases}
    ways: dict[str, Callable[[str], object]] = {
        "query, alpha 0.5": lambda text: client.query(text, index=index),
        "query, alpha 0": lambda text: client.query(text, index=index, alpha=0.0),
        "query, alpha 1": lambda text: client.query(text, index=index, alpha=1.0),
        "query, alpha 0.5, feedback 10": lambda text: client.query(text, index=index, feedback=10),
        "encoding the phrase": lambda text: phrase_vector.query_vector(usual, text),
        "BM25 leg": lambda text: client.backend.find(
            index, Request(text, vectors[text], WINDOW, semantic=False)
        ),
        "span leg": lambda text: client.backend.find(
            index, Request("", vectors[text], WINDOW, lexical=False)
        ),
    }
    return {name: _percentiles(way, phrases) for name, way in ways.items()}


def _percentiles(way: Callable[[str], object], phrases: Sequence[str]) -> dict[str, float]:
    way(phrases[0])
    milliseconds = []
    for text in phrases:
        started_at = time.perf_counter()
        way(text)
        milliseconds.append((time.perf_counter() - started_at) * 1000)
    return {f"p{share}": round(float(np.percentile(milliseconds, share)), 2) for share in (50, 95)}
