"""From scored passages to the hits that are shown: grouped by document, with their best spans, and
what is known of their turns.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Key, PassageContent, Request
from hybrid_search.encoder.base import Encoder
from hybrid_search.search import refine, span_search
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.candidates import ScoredPassage
from hybrid_search.search.result import Hit, Span

Group = Sequence[ScoredPassage]


def group_passages(passages: Sequence[ScoredPassage], group_by: str) -> list[Group]:
    """Passages of a hit, its best first; hits by their best passage. `by` is document or passage."""
    groups: dict[Hashable, list[ScoredPassage]] = {}
    for passage in passages:
        groups.setdefault(
            passage.stored.document_id if group_by == "document" else passage.stored.key, []
        ).append(passage)
    return list(groups.values())


@dataclass(frozen=True, slots=True, eq=False)
class HitBuilder:
    """Makes hits of `index` with `spans` spans each; with the words that matched, where they are to
    be marked, and what is `explained` of scores.
    """

    backend: Backend
    encoder: Encoder
    index: str
    spans: int
    refine: str | None
    highlight: bool
    explainer: ScoreExplainer | None

    def build_hits(self, groups: Sequence[Group]) -> list[Hit]:
        """A hit for each group: what is shown of all their passages is asked for at once."""
        contents = self.backend.fetch_contents(
            self.index, [passage.stored.key for group in groups for passage in group]
        )
        visible_groups = [
            [passage for passage in group if passage.stored.key in contents] for group in groups
        ]
        highlights = self._find_highlights([group[0] for group in visible_groups if group])
        return [
            self._build_hit(group, contents, highlights.get(group[0].stored.key, []))
            for group in visible_groups
            if group
        ]

    def _find_highlights(self, best: Group) -> dict[Key, list[tuple[int, int]]]:
        """The matching words of the best passages, each by the phrase that found it."""
        keys_by_request: dict[Request, list[Key]] = {}
        for passage in best if self.highlight else ():
            keys_by_request.setdefault(passage.request, []).append(passage.stored.key)
        highlights_by_request = (
            self.backend.find_highlights(self.index, request, keys)
            for request, keys in keys_by_request.items()
        )
        return {
            key: places
            for highlights in highlights_by_request
            for key, places in highlights.items()
        }

    def _build_hit(
        self,
        group: Group,
        contents: Mapping[Key, PassageContent],
        highlights: Sequence[tuple[int, int]],
    ) -> Hit:
        best, content = group[0], contents[group[0].stored.key]
        return Hit(
            id=best.stored.document_id,
            passage=best.stored.ordinal,
            score=best.score,
            bm25=best.stored.bm25,
            cosine=best.cosine,
            bm25_rank=best.bm25_rank or None,
            cosine_rank=best.cosine_rank or None,
            metadata=json.loads(content.metadata),
            spans=self._best_spans(group, contents),
            text=content.text,
            start=content.start,
            highlights=[(content.start + start, content.start + end) for start, end in highlights]
            if self.highlight
            else None,
            explanation=self.explainer.explain(best) if self.explainer else None,
        )

    def _best_spans(self, group: Group, contents: Mapping[Key, PassageContent]) -> list[Span]:
        """The best spans of a hit's passages, with what is known of their turns."""
        passage_spans = [
            span_search.PassageSpans.from_passage(
                contents[passage.stored.key].start, passage.stored.tokens, passage.cosines
            )
            for passage in group
        ]
        k = max(self.spans, refine.SPANS) if self.refine else self.spans
        places = span_search.best_places(passage_spans, k)
        spans = [
            _build_span(contents[group[number].stored.key], start, end, cosine)
            for number, start, end, cosine in places
        ]
        if self.refine == "isolate" and spans:
            spans = refine.isolate(self.encoder, group[0].request.vector, spans)
        return spans[: self.spans]


def _build_span(content: PassageContent, start: int, end: int, cosine: float) -> Span:
    turns: Sequence[Mapping[str, Any]] = json.loads(content.layout)
    turn = next(
        layout_turn
        for layout_turn in turns
        if layout_turn["start"] <= start and end <= layout_turn["end"]
    )
    return Span(
        start=start,
        end=end,
        text=content.text[start - content.start : end - content.start],
        cosine=cosine,
        turn=turn["turn"],
        turn_start=start - turn["start"],
        turn_end=end - turn["start"],
        speaker=turn.get("speaker"),
        start_ms=turn.get("start_ms"),
        end_ms=turn.get("end_ms"),
    )


@dataclass(frozen=True, slots=True)
class ScoreExplainer:
    """What all scores of a query have in common."""

    fusion: str
    alpha: float
    window: int
    calibration: Calibration

    def explain(self, best: ScoredPassage) -> dict[str, Any]:
        """Every number of ``score = alpha * spans + (1 - alpha) * bm25``, the two mapped by the
        fusion; and what they were mapped from.
        """
        return {
            "fusion": self.fusion,
            "alpha": self.alpha,
            "bm25": best.parts[0],
            "spans": best.parts[1],
            "score": best.score,
            "raw": {"bm25": best.stored.bm25, "cosine": best.cosine, "terms": best.terms},
            "ranks": {
                "bm25": best.bm25_rank or None,
                "cosine": best.cosine_rank or None,
                "window": self.window,
            },
            **({"calibration": asdict(self.calibration)} if self.fusion == "calibrated" else {}),
        }
