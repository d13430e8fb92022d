"""How long a warm query takes, in all and by leg."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybrid_search import encoder, phrase
from hybrid_search.backends.base import Request
from hybrid_search.client import Client
from hybrid_search.search import WINDOW


def measure(client: Client, index: str, phrases: Sequence[str]) -> dict[str, Any]:
    """p50 and p95 in milliseconds over `phrases`, each asked once after a warm-up, while nothing else runs."""
    client.query(phrases[0], index=index)
    usual = encoder.sized(encoder.load())  # as the client cuts its vectors
    vectors = {each: phrase.vector(usual, each) for each in phrases}
    ways: dict[str, Callable[[str], object]] = {
        "query, alpha 0.5": lambda each: client.query(each, index=index),
        "query, alpha 0": lambda each: client.query(each, index=index, alpha=0.0),
        "query, alpha 1": lambda each: client.query(each, index=index, alpha=1.0),
        "encoding the phrase": lambda each: phrase.vector(usual, each),
        "BM25 leg": lambda each: client.backend.candidates(index, Request(each, vectors[each], WINDOW, semantic=False)),
        "span leg": lambda each: client.backend.candidates(index, Request(each, vectors[each], WINDOW, lexical=False)),
    }
    return {name: _percentiles(way, phrases) for name, way in ways.items()}


def _percentiles(way: Callable[[str], object], phrases: Sequence[str]) -> dict[str, float]:
    taken = []
    for each in phrases:
        began = time.perf_counter()
        way(each)
        taken.append((time.perf_counter() - began) * 1000)
    return {f"p{share}": round(float(np.percentile(taken, share)), 1) for share in (50, 95)}
