"""Hits of a page from scored passages: best spans, their turns, metadata, highlights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Key, Request, StoredPassage
from hybrid_search.encoder import Encoder
from hybrid_search.search import span_search
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.contents import Contents
from hybrid_search.search.damage import describe_changed, describe_passages
from hybrid_search.search.hit import Hit, Span
from hybrid_search.search.query import DEFAULT_FUSION, PASSAGE, Query
from hybrid_search.search.span_content import build_span, find_turn, parse_layout, read_turns
from hybrid_search.search.types import Group, PassageSpans, Place, ScoredPassage
from hybrid_search.text.types import Floats
from hybrid_search.text.words import contains_words

SPARE = 2
"""Factor by which more spans are chosen than shown, as some are left out later."""

WORD_FOR_WORD = 0.9
"""The least probability of a hit that shows the phrase word for word.

Surrounding text blurs the vectors of words, so the score alone does not show a literal match.
"""

ISOLATED_SPANS = 10
"""Spans of a hit that are encoded again by themselves."""

RELATED = 0.6
"""The least cosine of a further span, as a share of the first span's cosine.

Clauses unrelated to the phrase have cosines of .1 to .3; the first span shown usually has .5 to .8.
"""


def group_passages(passages: Sequence[ScoredPassage], group_by: str) -> list[Group]:
    """Group passages one by one, or else by document; both levels keep the order of `passages`."""
    groups: dict[Key, list[ScoredPassage]] = {}
    for passage in passages:
        stored = passage.stored
        key = stored.key if group_by == PASSAGE else stored.document_id
        groups.setdefault(key, []).append(passage)
    return list(groups.values())


@dataclass(frozen=True, slots=True, eq=False)
class HitBuilder:
    """A builder of the hits of one query, from the contents fetched for it.

    Each hit gets a probability from `mention_map` if `is_known`; each span gets one if the query
    has a `min_probability`. `calibration` is what the fusion used.
    """

    backend: Backend
    encoder: Encoder
    query: Query
    contents: Contents
    calibration: Calibration
    mention_map: Calibration
    is_known: bool = True
    _misplaced: dict[Key, StoredPassage] = field(default_factory=dict)
    _layouts: dict[Key, list[Any]] = field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """Warnings about damage in the passages of the hits built so far, or left out."""
        index, misplaced = self.query.index, list(self._misplaced.values())
        return [
            *describe_changed(index, self.contents.damaged),
            *describe_passages(index, misplaced, "offsets"),
        ]

    def build_hits(self, groups: Sequence[Group]) -> list[Hit]:
        """Return one hit per group, except groups whose passages are all deleted or damaged."""
        visible_groups = [
            visible
            for group in groups
            if (visible := [item for item in group if item.stored.key in self.contents.by_key])
        ]
        highlights = self._find_highlights([group[0] for group in visible_groups])
        return [
            self._build_hit(group, highlights.get(group[0].stored.key, []))
            for group in visible_groups
        ]

    def _find_highlights(self, best: Group) -> dict[Key, list[tuple[int, int]]]:
        """Return the matching words of each best passage, for the phrase that found it."""
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
        content = self.contents.by_key[best.stored.key]
        places = [(content.start + start, content.start + end) for start, end in highlights]
        spans = self._best_spans(group)
        probability = self._find_probability(group, spans)
        turns = read_turns(self._parse_layout(best))
        phrase = best.request.phrase if len(set(self.query.phrases)) > 1 else None
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
            explanation=self._explain(best) if self.query.explain else None,
        )

    def _find_probability(self, group: Group, spans: Sequence[Span]) -> float | None:
        """Return the probability that a hit's best span is a mention, if known.

        A span that contains the phrase word for word gets at least `WORD_FOR_WORD`.
        """
        if not self.is_known:
            return None
        scores = [passage.span_score for passage in group if len(passage.cosines)]
        probability = float(self.mention_map.span(np.array(scores)).max(initial=0.0))
        if any(contains_words(span.text, group[0].request.phrase) for span in spans):
            return max(probability, WORD_FOR_WORD)
        return probability

    def _explain(self, best: ScoredPassage) -> dict[str, Any]:
        """Return every component of the score of a hit's best passage.

        ``score = alpha * spans + (1 - alpha) * bm25``, both mapped by the fusion; ``raw`` and
        ``ranks`` have the values before mapping.
        """
        explanation = {
            "fusion": self.query.fusion,
            "alpha": self.query.alpha,
            "bm25": best.parts[0],
            "spans": best.parts[1],
            "score": best.score,
            "raw": {
                "bm25": best.stored.bm25,
                "cosine": best.cosine,
                "prior": best.prior,
                "terms": best.terms,
            },
            "ranks": {
                "bm25": best.bm25_rank or None,
                "cosine": best.cosine_rank or None,
                "window": self.query.window,
            },
        }
        if self.query.fusion == DEFAULT_FUSION:
            explanation["calibration"] = self.calibration.to_dict()
        return explanation

    def _best_spans(self, group: Group) -> list[Span]:
        """Return the best spans of a hit's passages, with the details of their turns."""
        if not self.query.spans:
            return []
        has_prior = group[0].request.prior is not None
        passage_contents = [self.contents.by_key[passage.stored.key] for passage in group]
        passage_spans = [
            PassageSpans.from_passage(
                content.start, passage.stored.tokens, passage.cosines, passage.priors
            )
            for content, passage in zip(passage_contents, group, strict=True)
        ]
        count = self.query.spans * (SPARE if has_prior else 1)
        if self.query.refine:
            count = max(count, ISOLATED_SPANS)
        places = span_search.best_places(passage_spans, count)
        spans: Iterable[Span] = self._place_spans(group, places)
        if self.query.min_probability is not None:
            spans = select_likely_spans(list(spans), self.mention_map, self.query.min_probability)
        if self.query.refine:
            spans = isolate(self.encoder, group[0].request.vector, list(spans))
        if has_prior:
            spans = leave_out_weak_spans(spans)
        return list(islice(spans, self.query.spans))

    def _place_spans(self, group: Group, places: Iterable[Place]) -> Iterator[Span]:
        """Yield the spans at places of a hit's passages, each with the details of its turn."""
        for place in places:
            passage = group[place.passage]
            content = self.contents.by_key[passage.stored.key]
            turn = find_turn(content, self._parse_layout(passage), place.start, place.end)
            if turn is None:
                self._misplaced[passage.stored.key] = passage.stored
            else:
                yield build_span(content, turn, place)

    def _parse_layout(self, passage: ScoredPassage) -> list[Any]:
        """Return the turn layout of a passage, parsed once."""
        key = passage.stored.key
        if key not in self._layouts:
            self._layouts[key] = parse_layout(self.contents.by_key[key])
        return self._layouts[key]


def select_likely_spans(
    spans: Sequence[Span], mention_map: Calibration, least: float
) -> list[Span]:
    """Return the spans that have at least this probability, with their probability set."""
    scores = np.array([span.cosine + span.prior for span in spans], dtype=np.float64)
    probabilities = mention_map.span(scores).tolist()
    return [
        replace(span, probability=probability)
        for span, probability in zip(spans, probabilities, strict=True)
        if probability >= least
    ]


def leave_out_weak_spans(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield `spans` without repetitions and weak matches.

    A repetition has the same words as an earlier span. A weak match has a cosine below `RELATED`
    times the cosine of the first span. Lazy: spans that the caller does not take are not built.
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


def isolate(encoder: Encoder, query: Floats, spans: Sequence[Span]) -> list[Span]:
    """Return `spans` with their cosines when encoded alone, best first.

    `query` is the phrase's unit vector.
    """
    encodings = encoder.encode([span.text for span in spans])
    refined = []
    for span, encoding in zip(spans, encodings, strict=True):
        vector = encoding.vectors.sum(axis=0)
        cosine = float(vector @ query / max(float(np.linalg.norm(vector)), 1e-12))
        refined.append(replace(span, cosine=cosine))
    return sorted(refined, key=lambda span: (-span.cosine, span.start))
