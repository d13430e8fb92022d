"""Build the hits of a page from scored passages: best spans, their turns, metadata, highlights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import BLOCK, Key, OutrankedPassage, Request, StoredPassage
from hybrid_search.encoder.base import Encoder
from hybrid_search.search import refine, span_search
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.contents import Contents
from hybrid_search.search.damage import describe_changed, describe_misplaced
from hybrid_search.search.query import Query
from hybrid_search.search.result import Hit, Span
from hybrid_search.search.span_content import build_span, find_turn, parse_layout, read_turns
from hybrid_search.search.types import (
    Group,
    PassageSpans,
    Place,
    ScoredPassage,
    ScoreExplainer,
)
from hybrid_search.text.words import contains_words

SPARE = 2
"""How many times the spans to show are chosen, as some of them are left out."""

WORD_FOR_WORD = 0.9
"""The least probability of a hit that shows the phrase word for word.

What stands around words blurs their vectors, so that the score alone does not tell.
"""

RELATED = 0.6
"""The least cosine of a further span, as a share of that of the first one.

A clause that has nothing to do with the phrase has a cosine of .1 to .3, and what is shown first
usually .5 to .8.
"""


def group_passages(passages: Sequence[ScoredPassage], group_by: str) -> list[Group]:
    """Return the passages by document, or one by one; both levels keep the order of `passages`."""
    groups: dict[str, list[ScoredPassage]] = {}
    for passage in passages:
        groups.setdefault(group_key(passage.stored, group_by), []).append(passage)
    return list(groups.values())


def order_by_block(groups: Sequence[Group]) -> list[Group]:
    """Return `groups`, best first, with none before the block from which on it can be a hit."""
    if not any(passage.block for group in groups for passage in group):
        return list(groups)
    blocks = [min(passage.block for passage in group) for group in groups]
    ordered: list[Group] = []
    waiting = list(range(len(groups)))
    for block in range(max(blocks, default=0)):
        free = (BLOCK << block) - len(ordered)
        chosen = [number for number in waiting if blocks[number] <= block][:free]
        ordered += [groups[number] for number in chosen]
        waiting = sorted(set(waiting).difference(chosen))
    return ordered + [groups[number] for number in waiting]


def group_key(passage: StoredPassage | OutrankedPassage, group_by: str) -> str:
    """Return what the passages of a hit have in common, and no others."""
    key: str = passage.document_id if group_by == "document" else passage.key
    return key


@dataclass(frozen=True, slots=True, eq=False)
class HitBuilder:
    """Builds hits of one query from the contents that were fetched for it.

    Each hit has its probability by the `mention_map` if that `is_known` and not rough; and each
    span has one if the query asks for a least one.
    """

    backend: Backend
    encoder: Encoder
    query: Query
    contents: Contents
    explainer: ScoreExplainer | None
    mention_map: Calibration
    is_known: bool = True
    _misplaced: dict[Key, StoredPassage] = field(default_factory=dict)
    _layouts: dict[Key, list[Any]] = field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """What is damaged in the passages of the hits that were built, or left out."""
        index = self.query.index
        return [
            *describe_changed(index, self.contents.damaged),
            *describe_misplaced(index, list(self._misplaced.values())),
        ]

    def build_hits(self, groups: Sequence[Group]) -> list[Hit]:
        """Return a hit for each group, unless all its passages are deleted or damaged."""
        visible_groups = [
            visible
            for group in groups
            if (visible := [item for item in group if item.stored.key in self.contents])
        ]
        highlights = self._find_highlights([group[0] for group in visible_groups])
        return [
            self._build_hit(group, highlights.get(group[0].stored.key, []))
            for group in visible_groups
        ]

    def _find_highlights(self, best: Group) -> dict[Key, list[tuple[int, int]]]:
        """Return the matching words of the best passages, each by the phrase that found it."""
        if not self.query.highlight:
            return {}
        keys_by_request: dict[Request, list[Key]] = {}
        for passage in best:
            keys_by_request.setdefault(passage.request, []).append(passage.stored.key)
        highlights: dict[Key, list[tuple[int, int]]] = {}
        for request, keys in keys_by_request.items():
            highlights |= self.backend.find_highlights(self.query.index, request, keys)
        return highlights

    def _build_hit(self, group: Group, highlights: Sequence[tuple[int, int]]) -> Hit:
        best = group[0]
        content = self.contents[best.stored.key]
        places = [(content.start + start, content.start + end) for start, end in highlights]
        turns, phrase = read_turns(self._parse_layout(best)), self._name_phrase(best)
        spans = self._best_spans(group)
        probability = self._find_probability(group, spans)
        return Hit(
            id=best.stored.document_id,
            passage=best.stored.ordinal,
            score=best.score,
            bm25=best.stored.bm25,
            cosine=best.cosine,
            prior=best.prior,
            probability=probability,
            bm25_rank=best.bm25_rank or None,
            cosine_rank=best.cosine_rank or None,
            metadata=self.contents.parse_metadata(best.stored),
            spans=spans,
            text=content.text,
            start=content.start,
            turns=turns,
            phrase=phrase,
            highlights=places if self.query.highlight else None,
            explanation=self.explainer.explain(best) if self.explainer else None,
        )

    def _find_probability(self, group: Group, spans: Sequence[Span]) -> float | None:
        """Return the probability that the best span of a hit's passages is a mention, if known.

        A span that has the phrase word for word is one with at least `WORD_FOR_WORD`.
        """
        if not self.is_known:
            return None
        scores = [passage.span_score for passage in group if len(passage.cosines)]
        probability = float(self.mention_map.span(np.array(scores)).max(initial=0.0))
        if any(contains_words(span.text, group[0].request.phrase) for span in spans):
            return max(probability, WORD_FOR_WORD)
        return probability

    def _name_phrase(self, best: ScoredPassage) -> str | None:
        """Return the phrase that a passage fits best, None unless different ones were asked."""
        return best.request.phrase if len(set(self.query.phrases)) > 1 else None

    def _best_spans(self, group: Group) -> list[Span]:
        """Return the best spans of a hit's passages, with what is known of their turns."""
        if not self.query.spans:
            return []
        has_prior = group[0].request.prior is not None
        passage_contents = [self.contents[passage.stored.key] for passage in group]
        passage_spans = [
            PassageSpans.from_passage(
                content.start, passage.stored.tokens, passage.cosines, passage.priors
            )
            for content, passage in zip(passage_contents, group, strict=True)
        ]
        places = span_search.best_places(passage_spans, self._count_candidates(has_prior))
        spans: Iterable[Span] = self._place_spans(group, places)
        if self.query.min_probability is not None:
            spans = select_likely_spans(list(spans), self.mention_map, self.query.min_probability)
        if self.query.refine == "isolate":
            spans = refine.isolate(self.encoder, group[0].request.vector, list(spans))
        if has_prior:
            spans = leave_out_weak_spans(spans)
        return list(islice(spans, self.query.spans))

    def _place_spans(self, group: Group, places: Iterable[Place]) -> Iterator[Span]:
        """Yield the spans at places of a hit's passages, each with what is known of its turn."""
        for place in places:
            passage = group[place.passage]
            content = self.contents[passage.stored.key]
            turn = find_turn(content, self._parse_layout(passage), place.start, place.end)
            if turn is None:
                self._misplaced[passage.stored.key] = passage.stored
            else:
                yield build_span(content, turn, place)

    def _parse_layout(self, passage: ScoredPassage) -> list[Any]:
        """Return the record of a passage's turns, which is parsed once."""
        key = passage.stored.key
        if key not in self._layouts:
            self._layouts[key] = parse_layout(self.contents[key])
        return self._layouts[key]

    def _count_candidates(self, has_prior: bool) -> int:
        """Return how many spans of a hit to choose from."""
        count = self.query.spans
        if has_prior:  # some of them are left out
            count *= SPARE
        return max(count, refine.SPANS) if self.query.refine else count


def select_likely_spans(
    spans: Sequence[Span], mention_map: Calibration, least: float
) -> list[Span]:
    """Return the spans that have at least this probability, with it."""
    scores = np.array([span.cosine + span.prior for span in spans], dtype=np.float64)
    probabilities = mention_map.span(scores).tolist()
    return [
        replace(span, probability=probability)
        for span, probability in zip(spans, probabilities, strict=True)
        if probability >= least
    ]


def leave_out_weak_spans(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield `spans` without those that say nothing more than the first, or too little.

    Too little is a cosine below `RELATED` of that of the first; nothing more, the same words as in
    a span before. What is not asked for is not built.
    """
    words_seen: set[tuple[str, ...]] = set()
    least_cosine: float | None = None
    for span in spans:
        if least_cosine is None:
            least_cosine = RELATED * span.cosine
        words = tuple(span.text.casefold().split())
        if words not in words_seen and span.cosine >= least_cosine:
            yield span
        words_seen.add(words)
