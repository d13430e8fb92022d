"""Run one query of a corpus, from the phrase to the hits."""

from __future__ import annotations

from functools import partial

from benchmarks.servers.entries import Corpus
from hybrid_search import encoder
from hybrid_search.backends.base import Backend
from hybrid_search.search.calibration import load
from hybrid_search.search.pipeline import search
from hybrid_search.search.query import DEFAULTS, Query
from hybrid_search.search.result import Result


def run_query(
    backend: Backend, corpus: Corpus, index: str, text: str, alpha: float = DEFAULTS["alpha"]
) -> Result:
    """Return the answer to one query, from the phrase to the hits."""
    query = Query(text, index=index, alpha=alpha)
    return search(backend, corpus.encoder, partial(load, encoder.SHIPPED), query)
