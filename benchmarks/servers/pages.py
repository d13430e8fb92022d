"""Compare pages of hits with those of a search that scores every span of every passage.

A page is in the order of scores, in which more counts than the cosine of the span leg: so the best
ten passages of that leg can all be there, and the page still be another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from statistics import fmean

from benchmarks.servers.entries import Corpus
from benchmarks.servers.queries import run_query
from hybrid_search.backends.base import Backend
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.types import FoundPassages, Request

Cosines = Mapping[str, Mapping[str, float]]
"""The best cosine of every passage, by phrase and passage."""


class ExhaustiveBackend(ServerBackend):
    """A server whose span leg is computed here, from the word codes of all passages."""

    def __init__(self, backend: ServerBackend, cosines: Cosines) -> None:
        super().__init__(backend.server, backend.options)
        self._cosines = cosines

    def find(self, index: str, request: Request) -> FoundPassages:
        """Return the BM25 leg of the server, and the passages of the best of all spans."""
        found = super().find(index, replace(request, semantic=False))
        cosines = self._cosines[request.phrase]
        nearest = nlargest(request.window, cosines, key=cosines.__getitem__)
        keys = dict.fromkeys([*(passage.key for passage in found.passages), *nearest])
        return replace(found, passages=self.read_passages(index, request, list(keys)))


def compare_pages(
    backend: ServerBackend,
    corpus: Corpus,
    index: str,
    phrases: Sequence[str],
    cosines: Cosines,
    alphas: Mapping[str, float],
) -> dict[str, float]:
    """Return for each alpha the share of the exhaustive search's ten hits that are on the page."""
    exhaustive = ExhaustiveBackend(backend, cosines)
    shares: dict[str, list[float]] = {name: [] for name in alphas}
    for name, alpha in alphas.items():
        for text in phrases:
            expected = _list_hits(exhaustive, corpus, index, text, alpha)
            hits = _list_hits(backend, corpus, index, text, alpha)
            shares[name].append(len(hits & expected) / len(expected))
    return {name: round(fmean(values), 3) for name, values in shares.items()}


def _list_hits(
    backend: Backend, corpus: Corpus, index: str, text: str, alpha: float
) -> set[tuple[str, int]]:
    return {(hit.id, hit.start) for hit in run_query(backend, corpus, index, text, alpha).hits}
