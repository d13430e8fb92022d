"""A query, from phrase to hits: encode -> candidates -> complete -> fuse -> group -> show."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np

from hybrid_search import fusion, phrase, refine, tokens
from hybrid_search.backends.base import Backend, IndexSpec, Request, Stored, check_spec
from hybrid_search.calibration import Calibration
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import UsageError
from hybrid_search.filters import compile_where
from hybrid_search.fusion.base import Legs, Ranks, Scores
from hybrid_search.results import Hit, Result, Span
from hybrid_search.types import Floats
from hybrid_search.words import query_terms

WINDOW = 100
"""Passages asked of each leg, at least: then neither scores nor order depend on `size`."""

MAX_SIZE = 10_000
"""The largest offset + size: what servers allow by default, too."""

GROUPS = ("document", "passage")
REFINEMENTS = (None, "isolate")


@dataclass(frozen=True, slots=True)
class Query:
    """All that can be asked. Checked when made: raises UsageError naming the value and what is allowed."""

    phrases: tuple[str, ...]
    index: str
    alpha: float = 0.5
    size: int = 10
    where: Mapping[str, Any] | None = None
    fusion: str = fusion.DEFAULT
    context: str | None = None
    spans: int = 3
    min_score: float | None = None
    offset: int = 0
    group_by: str = "document"
    refine: str | None = None
    explain: bool = False

    def __post_init__(self) -> None:
        if not self.phrases or not all(isinstance(each, str) and each.strip() for each in self.phrases):
            raise UsageError(f"the phrase is blank ({list(self.phrases)!r}): say what to look for")
        if not 0.0 <= self.alpha <= 1.0:
            raise UsageError(f"alpha is {self.alpha}: it is the weight of the span cosine, from 0 (BM25 only) to 1 (spans only)")
        if self.min_score is not None and not math.isfinite(self.min_score):
            raise UsageError(f"min_score is {self.min_score}: give a number")
        if not 1 <= self.size <= MAX_SIZE or self.offset < 0 or self.offset + self.size > MAX_SIZE:
            raise UsageError(
                f"size is {self.size} and offset {self.offset}: size is at least 1, offset at least 0, and both together at most {MAX_SIZE}"
            )
        if self.group_by not in GROUPS or self.refine not in REFINEMENTS or not 0 <= self.spans <= 100:
            asked = f"group_by is {self.group_by!r} (of {GROUPS}), refine {self.refine!r} (of {REFINEMENTS}), spans {self.spans} (0 to 100)"
            raise UsageError(f"{asked}: one of them is not allowed")
        fusion.fusion(self.fusion)

    @property
    def window(self) -> int:
        """Passages asked of each leg."""
        return max(WINDOW, self.offset + self.size)


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A passage with everything that made its score: the phrase's `vector`, `cosines` float32 ``[spans]`` and `cosine`, the best of them."""

    stored: Stored
    vector: Floats
    cosines: Floats
    cosine: float
    score: float = 0.0
    bm25_rank: int = 0
    cosine_rank: int = 0
    parts: tuple[float, float] = (0.0, 0.0)

    @property
    def order(self) -> tuple[float, float, str, int]:
        """A total order: by score, then cosine, then id and place."""
        return -self.score, -self.cosine, self.stored.document_id, self.stored.ordinal


def search(backend: Backend, encoder: Encoder, calibration: Calibration, query: Query) -> Result:
    """Answer `query`. Raises IndexMissingError, ModelError where the index is of another model, UsageError for an unknown field."""
    began = time.perf_counter()
    spec, fields = backend.head(query.index)
    check_spec(query.index, spec, IndexSpec.of(encoder.info, spec.policy))
    conditions = compile_where(query.where, fields)
    best: dict[Hashable, Scored] = {}
    for text in query.phrases:
        vector = phrase.vector(encoder, text, query.context)
        request = Request(text, vector, query.window, conditions, lexical=query.alpha < 1, semantic=query.alpha > 0)
        scored, method = retrieve(backend, query.index, request)
        for each in fuse(scored, request, query.fusion, query.alpha, calibration):
            held = best.get(each.stored.key)
            best[each.stored.key] = each if held is None or each.order < held.order else held
    ordered = sorted(best.values(), key=lambda each: each.order)
    groups = _grouped([each for each in ordered if query.min_score is None or each.score >= query.min_score], query)
    hits = [_hit(group, query, encoder) for group in groups[query.offset : query.offset + query.size]]
    return Result(hits, len(groups), _plan(query, spec, method, len(best), began))


def retrieve(backend: Backend, index: str, request: Request) -> tuple[list[Scored], str]:
    """Candidates of both legs with both scores of each completed, not yet fused; and how the span leg was run."""
    found = backend.candidates(index, request)
    stored = backend.complete(index, request, list(dict.fromkeys([*found.lexical, *found.semantic])))
    cosines = list(tokens.cosines_of_each(request.vector, [each.tokens for each in stored]))
    best = [float(each.max()) if len(each) else 0.0 for each in cosines]
    return [Scored(*each) for each in zip(stored, repeat(request.vector), cosines, best, strict=False)], found.method


def fuse(scored: Sequence[Scored], request: Request, name: str, alpha: float, calibration: Calibration) -> list[Scored]:
    """`scored` with the fused score, its two parts and both ranks."""
    bm25 = np.array([each.stored.bm25 for each in scored])
    cosine = np.array([each.cosine for each in scored])
    ids = [(each.stored.document_id, each.stored.ordinal) for each in scored]
    ranks = [ranked(scores, ids, request.window) for scores in (bm25, cosine)]
    ranks[0][bm25 <= 0] = 0
    for leg, asked in zip(ranks, (request.lexical, request.semantic), strict=True):
        leg *= asked  # what a leg was not asked for has no rank in it
    legs = Legs(bm25, cosine, ranks[0], ranks[1], len(query_terms(request.phrase)), calibration)
    values = zip(scored, *(fusion.fusion(name)(legs, weight) for weight in (alpha, 0.0, 1.0)), *ranks, strict=True)
    return [
        replace(each, score=float(score), parts=(float(lexical), float(semantic)), bm25_rank=int(first), cosine_rank=int(second))
        for each, score, lexical, semantic, first, second in values
    ]


def ranked(scores: Scores, ids: Sequence[tuple[str, int]], window: int) -> Ranks:
    """Ranks from 1, by score and then by id; 0 beyond `window`."""
    ranks = np.zeros(len(scores), dtype=np.int64)
    order = sorted(range(len(scores)), key=lambda number: (-scores[number], ids[number]))
    ranks[order[:window]] = np.arange(1, min(window, len(order)) + 1)
    return ranks


def _grouped(scored: Sequence[Scored], query: Query) -> list[list[Scored]]:
    """Passages of a hit, its best first; hits by their best passage."""
    groups: dict[Hashable, list[Scored]] = {}
    for each in scored:
        key = each.stored.document_id if query.group_by == "document" else each.stored.key
        groups.setdefault(key, []).append(each)
    return list(groups.values())


def _hit(group: Sequence[Scored], query: Query, encoder: Encoder) -> Hit:
    best = group[0]
    return Hit(
        id=best.stored.document_id,
        passage=best.stored.ordinal,
        score=best.score,
        bm25=best.stored.bm25,
        cosine=best.cosine,
        bm25_rank=best.bm25_rank or None,
        cosine_rank=best.cosine_rank or None,
        metadata=json.loads(best.stored.metadata),
        spans=_shown(group, query, encoder),
        text=best.stored.text,
        start=best.stored.start,
        explanation=_explanation(best, query) if query.explain else None,
    )


def _shown(group: Sequence[Scored], query: Query, encoder: Encoder) -> list[Span]:
    """The best spans of a hit's passages, with what is known of their turns."""
    pieces = [phrase.Piece.at(each.stored.start, each.stored.tokens, each.cosines) for each in group]
    k = max(query.spans, refine.SPANS) if query.refine else query.spans
    chosen = phrase.best_places(pieces, k)
    turns = {number: json.loads(group[number].stored.layout) for number, *_ in chosen}
    found = [_span(group[number].stored, start, end, cosine, turns[number]) for number, start, end, cosine in chosen]
    if query.refine == "isolate" and found:
        found = refine.isolate(encoder, group[0].vector, found)
    return found[: query.spans]


def _span(stored: Stored, start: int, end: int, cosine: float, turns: Sequence[Mapping[str, Any]]) -> Span:
    turn = next(each for each in turns if each["start"] <= start and end <= each["end"])
    return Span(
        start=start,
        end=end,
        text=stored.text[start - stored.start : end - stored.start],
        cosine=cosine,
        turn=turn["turn"],
        turn_start=start - turn["start"],
        turn_end=end - turn["start"],
        speaker=turn.get("speaker"),
        start_ms=turn.get("start_ms"),
        end_ms=turn.get("end_ms"),
    )


def _explanation(best: Scored, query: Query) -> dict[str, Any]:
    """Every number of ``score = alpha * spans + (1 - alpha) * bm25``, the two mapped by the fusion."""
    return {"fusion": query.fusion, "alpha": query.alpha, "bm25": best.parts[0], "spans": best.parts[1], "score": best.score}


def _plan(query: Query, spec: IndexSpec, method: str, fused: int, began: float) -> dict[str, Any]:
    return {
        "phrase": query.phrases[0] if len(query.phrases) == 1 else list(query.phrases),
        "index": query.index,
        "alpha": query.alpha,
        "fusion": query.fusion,
        "legs": [name for name, asked in (("bm25", query.alpha < 1), ("spans", query.alpha > 0)) if asked],
        "window": query.window,
        "candidates": method,
        "passages": fused,
        "model": spec.model,
        "precision": spec.precision,
        "milliseconds": round((time.perf_counter() - began) * 1000, 1),
    }
