"""The passages that the first request of a query proposes, and the few that are scored exactly.

Both legs propose passages for the span leg: a passage that a graph search missed among near
duplicates often has a word of the phrase. All come with the scores of their best spans, or with
short codes to estimate them; only passages of documents that can be on the page are scored exactly.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import inf
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.server.first_pass import BestSpansByKey
from hybrid_search.backends.server.passage_codec import parse_passage_id
from hybrid_search.backends.types import Key, OutrankedPassage, PageOrder, Request
from hybrid_search.backends.window import choose_window

SPARE_DOCUMENTS = 2
"""Documents beyond a page that are scored exactly, too.

They replace documents that turn out to be damaged or deleted.
"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which two numbers a score is."""

    low: float
    high: float


ABSENT = Bounds(0.0, 0.0)
"""The score of a leg that does not count for a passage."""

UNKNOWN = Bounds(-inf, inf)


@dataclass(frozen=True, slots=True, eq=False)
class Proposals:
    """The passages of both legs.

    Attributes:
        bm25: BM25 scores of the passages of the BM25 leg, best first.
        best_spans: The best spans of each passage of the span leg, None where they are unknown;
            empty if only BM25 was asked. A passage written since can be in the BM25 leg alone.
        unlisted_bm25: The largest possible BM25 score of any other passage, 0 if no other has a
            word of the phrase.
    """

    bm25: dict[Key, float]
    best_spans: BestSpansByKey
    unlisted_bm25: float = 0.0

    @property
    def unknown(self) -> set[Key]:
        """The passages whose best spans are unknown."""
        return {key for key, best in self.best_spans.items() if best is None}

    def bound_bm25(self, key: Key) -> Bounds:
        """Return the bounds of the BM25 score of a passage."""
        if key in self.bm25:
            return Bounds(self.bm25[key], self.bm25[key])
        return Bounds(0.0, self.unlisted_bm25)

    def bound_best_span(self, key: Key, error: float) -> Bounds:
        """Return the bounds of a passage's best span, if scores are off by up to `error`."""
        best = self.best_spans.get(key)
        if best is None:
            return UNKNOWN
        return Bounds(best.score - best.doubt - error, best.score + error)


@dataclass(frozen=True, slots=True)
class Windows:
    """The passages within the windows of the legs, best first."""

    lexical: Sequence[Key]
    semantic: Sequence[Key]


def cut_windows(
    proposals: Proposals, request: Request, exact: Mapping[Key, float] = MappingProxyType({})
) -> Windows:
    """Return the passages within the windows of the legs.

    The window of the span leg depends on the proposals alone, however many of them are scored
    exactly, so that all pages are cuts of one list.

    Args:
        proposals: The proposals of both legs.
        request: The request.
        exact: The largest cosines of passages that were scored exactly. They count where the best
            spans are unknown; without them such passages are in no window.
    """
    spans = proposals.best_spans.items()
    cosines = {key: best.cosine if best else exact.get(key) for key, best in spans}
    places = [
        (-cosine, *parse_passage_id(key), key)
        for key, cosine in cosines.items()
        if cosine is not None
    ]
    lexical = list(proposals.bm25) if request.lexical else []
    return Windows(
        _cut(lexical, request.window), _cut([key for *_, key in sorted(places)], request.window)
    )


def _cut(ranked: Sequence[Key], window: int) -> list[Key]:
    documents = (parse_passage_id(key)[0] for key in ranked)
    return [ranked[position] for position in choose_window(documents, window)]


def choose_exact(
    proposals: Proposals, windows: Windows, request: Request, error: float
) -> dict[Key, int]:
    """Return the passages to score exactly, in the order of their ids, with their blocks.

    They are all passages of the documents that can be among the best, even if `SPARE_DOCUMENTS` of
    these fail; without an order of the page, the passages of all documents.

    Args:
        proposals: The proposals of both legs.
        windows: The passages within the windows of the legs.
        request: The request.
        error: The assumed largest error of the scores of best spans.
    """
    candidates = {*windows.lexical, *windows.semantic, *proposals.unknown}
    keys = sorted(candidates, key=parse_passage_id)
    if request.page_order is None:
        return dict.fromkeys(keys, 0)
    documents = [parse_passage_id(key)[0] for key in keys]
    order = request.page_order
    lowest, highest = _bound_scores(keys, proposals, request, order, error)
    blocks: dict[str, int] = {}
    for block, end in enumerate(order.block_ends):
        possible = find_possible_documents(documents, lowest, highest, end + SPARE_DOCUMENTS)
        blocks = dict.fromkeys(possible, block) | blocks
    pairs = zip(keys, documents, strict=True)
    return {key: blocks[document] for key, document in pairs if document in blocks}


def find_possible_documents(
    documents: Sequence[str], lowest: Sequence[float], highest: Sequence[float], count: int
) -> set[str]:
    """Return the documents that can be among the `count` best.

    A document counts by its best passage. It cannot be among the best if `count` others have lowest
    scores above its highest.

    Args:
        documents: The document of each passage.
        lowest: The least score that each passage can have.
        highest: The largest score that each passage can have.
        count: The number of documents.
    """
    best: dict[str, float] = {}
    for document, score in zip(documents, lowest, strict=True):
        best[document] = max(best.get(document, -inf), score)
    least = nlargest(count, best.values())[-1] if len(best) >= count else -inf
    pairs = zip(documents, highest, strict=True)
    return {document for document, score in pairs if score >= least}


def list_outranked(
    proposals: Proposals, windows: Windows, exact: Container[Key]
) -> list[OutrankedPassage]:
    """Return the passages within the windows of both legs that are not scored exactly."""
    keys = sorted({*windows.lexical, *windows.semantic}, key=parse_passage_id)
    return [_describe_outranked(key, proposals) for key in keys if key not in exact]


def _describe_outranked(key: Key, proposals: Proposals) -> OutrankedPassage:
    document_id, ordinal = parse_passage_id(key)
    best = proposals.best_spans.get(key)
    span_score = best.score if best else 0.0
    return OutrankedPassage(key, document_id, ordinal, proposals.bm25.get(key, 0.0), span_score)


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
