"""The passages that the first request of a query proposes, and the few of them that matter.

Both legs propose passages for the span leg: a passage that a graph search has missed among near
duplicates often has a word of the phrase. All come with the scores of their best spans, or with
what these are estimated from; only those of documents that can be on the page are scored exactly.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from math import inf

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.server.first_pass import BestSpansByKey, FirstPass
from hybrid_search.backends.server.passage_codec import parse_passage_id
from hybrid_search.backends.types import Key, OutrankedPassage, PageOrder, Request

SPARE_DOCUMENTS = 2
"""Documents beyond a page that are scored exactly, too.

They take the places of those that turn out to be damaged, or to have been deleted meanwhile.
"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which two numbers a score is."""

    low: float
    high: float


ABSENT = Bounds(0.0, 0.0)
"""The score of a leg that does not count."""

UNKNOWN = Bounds(-inf, inf)


@dataclass(frozen=True, slots=True, eq=False)
class Proposals:
    """The passages of both legs.

    Attributes:
        bm25: BM25 scores of the passages of the BM25 leg, best first.
        best_spans: Those of each passage of the span leg, None where they are unknown; empty if
            only BM25 was asked. A passage written meanwhile can be in the BM25 leg alone.
        has_all_matches: Whether no other passage has a word of the phrase.
    """

    bm25: dict[Key, float]
    best_spans: BestSpansByKey
    has_all_matches: bool

    @property
    def unknown(self) -> set[Key]:
        """The passages whose best spans are unknown."""
        return {key for key, best in self.best_spans.items() if best is None}

    def bound_bm25(self, key: Key) -> Bounds:
        """Return what is known of the BM25 score of a passage."""
        if key in self.bm25:
            return Bounds(self.bm25[key], self.bm25[key])
        least = 0.0 if self.has_all_matches else next(reversed(self.bm25.values()), 0.0)
        return Bounds(0.0, least)

    def bound_best_span(self, key: Key, error: float) -> Bounds:
        """Return what is known of a passage's best span, if scores are off by an `error`."""
        best = self.best_spans.get(key)
        if best is None:
            return UNKNOWN
        return Bounds(best.score - best.doubt - error, best.score + error)


def choose_exact(proposals: Proposals, request: Request, first_pass: FirstPass) -> list[Key]:
    """Return the passages that are scored exactly, in the order of their ids.

    They are all passages of the documents that can be among the best, of which `SPARE_DOCUMENTS`
    can fail; without an order of the page those of all documents.
    """
    keys = _list_candidates(proposals, request, first_pass.beyond_window)
    if request.page_order is None:
        return keys
    documents = [parse_passage_id(key)[0] for key in keys]
    order = request.page_order
    lowest, highest = _bound_scores(keys, proposals, request, order, first_pass.error)
    possible = find_possible_documents(documents, lowest, highest, order.depth + SPARE_DOCUMENTS)
    return [key for key, document in zip(keys, documents, strict=True) if document in possible]


def find_possible_documents(
    documents: Sequence[str], lowest: Sequence[float], highest: Sequence[float], count: int
) -> set[str]:
    """Return the documents that can be among the `count` best.

    A document is as good as its best passage. It cannot be among them if so many others are better
    with their lowest scores than it is with its highest.

    Args:
        documents: The document of each passage.
        lowest: The least score that each passage can have.
        highest: The largest score that each passage can have.
        count: How many documents are looked for.
    """
    best: dict[str, float] = {}
    for document, score in zip(documents, lowest, strict=True):
        best[document] = max(best.get(document, -inf), score)
    least = nlargest(count, best.values())[-1] if len(best) >= count else -inf
    pairs = zip(documents, highest, strict=True)
    return {document for document, score in pairs if score >= least}


def list_outranked(
    proposals: Proposals, request: Request, exact: Container[Key]
) -> list[OutrankedPassage]:
    """Return the passages within the windows of both legs that are not scored exactly."""
    candidates = _list_candidates(proposals, request)
    return [_describe_outranked(key, proposals) for key in candidates if key not in exact]


def _describe_outranked(key: Key, proposals: Proposals) -> OutrankedPassage:
    document_id, ordinal = parse_passage_id(key)
    best = proposals.best_spans.get(key)
    span_score = best.score if best else 0.0
    return OutrankedPassage(key, document_id, ordinal, proposals.bm25.get(key, 0.0), span_score)


def choose_lexical(
    proposals: Proposals, request: Request, keys: Container[Key]
) -> dict[Key, float]:
    """Return those of `keys` that are passages of the BM25 leg, with their BM25 scores."""
    leg = islice(proposals.bm25.items(), request.window)
    return {key: score for key, score in leg if key in keys}


def count_in_window(
    proposals: Proposals, request: Request, exact: Container[Key], cosines: Sequence[float]
) -> int:
    """Return how many of the passages with exact cosines are within the window of the span leg.

    The others take their places in it by their estimates. `exact` are the passages that were scored
    exactly, and `cosines` those of the best of them.
    """
    estimates = [
        best.cosine for key, best in proposals.best_spans.items() if best and key not in exact
    ]
    window = nlargest(request.window, [*cosines, *estimates])
    return sum(cosine >= window[-1] for cosine in cosines)


def _list_candidates(proposals: Proposals, request: Request, beyond_window: int = 0) -> list[Key]:
    """Return the passages that can be within the window of a leg, in the order of their ids."""
    lexical = islice(proposals.bm25, request.window if request.lexical else 0)
    cosines = {key: best.cosine for key, best in proposals.best_spans.items() if best}
    nearest = _take_nearest(cosines, request.window + beyond_window)
    return sorted({*nearest, *lexical, *proposals.unknown}, key=parse_passage_id)


def _take_nearest(cosines: Mapping[Key, float], count: int) -> list[Key]:
    """Return the passages with the largest cosines; of equal ones the first ids."""
    if len(cosines) <= count:
        return list(cosines)
    least = nlargest(count, cosines.values())[-1]
    nearer = [key for key, cosine in cosines.items() if cosine > least]
    tied = [key for key, cosine in cosines.items() if cosine == least]
    return nearer + sorted(tied, key=parse_passage_id)[: count - len(nearer)]


def _bound_scores(
    keys: Sequence[Key], proposals: Proposals, request: Request, order: PageOrder, error: float
) -> tuple[list[float], list[float]]:
    """Return the lowest and the highest scores that passages can have on the page."""
    bm25 = [proposals.bound_bm25(key) if request.lexical else ABSENT for key in keys]
    spans = [proposals.bound_best_span(key, error) if request.semantic else ABSENT for key in keys]
    lowest = order.fuse_scores(_list_lows(bm25), _list_lows(spans))
    highest = order.fuse_scores(_list_highs(bm25), _list_highs(spans))
    return lowest.tolist(), highest.tolist()


def _list_lows(bounds: Sequence[Bounds]) -> NDArray[np.float64]:
    return np.array([bound.low for bound in bounds], dtype=np.float64)


def _list_highs(bounds: Sequence[Bounds]) -> NDArray[np.float64]:
    return np.array([bound.high for bound in bounds], dtype=np.float64)
