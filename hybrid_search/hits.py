"""From scored passages to the hits that are shown: grouped by document, with their best spans, and what is known of their turns."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hybrid_search import phrase, refine
from hybrid_search.backends.base import Backend, Content, Key, Request
from hybrid_search.calibration import Calibration
from hybrid_search.encoder.base import Encoder
from hybrid_search.results import Hit, Span
from hybrid_search.scoring import Scored

Group = Sequence[Scored]


def grouped(scored: Sequence[Scored], by: str) -> list[Group]:
    """Passages of a hit, its best first; hits by their best passage. `by` is document or passage."""
    groups: dict[Hashable, list[Scored]] = {}
    for each in scored:
        groups.setdefault(each.stored.document_id if by == "document" else each.stored.key, []).append(each)
    return list(groups.values())


@dataclass(frozen=True, slots=True, eq=False)
class Shower:
    """Makes hits of `index` with `spans` spans each; with the words that matched, where they are to be marked, and what is `explained` of scores."""

    backend: Backend
    encoder: Encoder
    index: str
    spans: int
    refine: str | None
    marked: bool
    explained: Explained | None

    def hits(self, groups: Sequence[Group]) -> list[Hit]:
        """A hit for each group: what is shown of all their passages is asked for at once."""
        contents = self.backend.contents(self.index, [each.stored.key for group in groups for each in group])
        there = [[each for each in group if each.stored.key in contents] for group in groups]
        marked = self._highlights([group[0] for group in there if group])
        return [self._hit(group, contents, marked.get(group[0].stored.key, [])) for group in there if group]

    def _highlights(self, best: Group) -> dict[Key, list[tuple[int, int]]]:
        """The matching words of the best passages, each by the phrase that found it."""
        asked: dict[Request, list[Key]] = {}
        for each in best if self.marked else ():
            asked.setdefault(each.request, []).append(each.stored.key)
        found = (self.backend.highlights(self.index, request, keys) for request, keys in asked.items())
        return {key: places for each in found for key, places in each.items()}

    def _hit(self, group: Group, contents: Mapping[Key, Content], marked: Sequence[tuple[int, int]]) -> Hit:
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
            spans=self._shown(group, contents),
            text=content.text,
            start=content.start,
            highlights=[(content.start + start, content.start + end) for start, end in marked] if self.marked else None,
            explanation=self.explained.numbers(best) if self.explained else None,
        )

    def _shown(self, group: Group, contents: Mapping[Key, Content]) -> list[Span]:
        """The best spans of a hit's passages, with what is known of their turns."""
        pieces = [phrase.Piece.at(contents[each.stored.key].start, each.stored.tokens, each.cosines) for each in group]
        k = max(self.spans, refine.SPANS) if self.refine else self.spans
        chosen = phrase.best_places(pieces, k)
        found = [_span(contents[group[number].stored.key], start, end, cosine) for number, start, end, cosine in chosen]
        if self.refine == "isolate" and found:
            found = refine.isolate(self.encoder, group[0].request.vector, found)
        return found[: self.spans]


def _span(content: Content, start: int, end: int, cosine: float) -> Span:
    turns: Sequence[Mapping[str, Any]] = json.loads(content.layout)
    turn = next(each for each in turns if each["start"] <= start and end <= each["end"])
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
class Explained:
    """What all scores of a query have in common."""

    fusion: str
    alpha: float
    window: int
    calibration: Calibration

    def numbers(self, best: Scored) -> dict[str, Any]:
        """Every number of ``score = alpha * spans + (1 - alpha) * bm25``, the two mapped by the fusion; and what they were mapped from."""
        return {
            "fusion": self.fusion,
            "alpha": self.alpha,
            "bm25": best.parts[0],
            "spans": best.parts[1],
            "score": best.score,
            "raw": {"bm25": best.stored.bm25, "cosine": best.cosine, "terms": best.terms},
            "ranks": {"bm25": best.bm25_rank or None, "cosine": best.cosine_rank or None, "window": self.window},
            **({"calibration": asdict(self.calibration)} if self.fusion == "calibrated" else {}),
        }
