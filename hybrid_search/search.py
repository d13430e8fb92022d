"""A query, from phrase to hits: encode -> candidates -> complete -> fuse -> group -> sort -> show."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybrid_search import compatible, facets, fusion, hits, phrase
from hybrid_search.backends.base import Backend, IndexSpec, Key, Request, check_spec
from hybrid_search.calibration import Calibration
from hybrid_search.encoder.base import Encoder
from hybrid_search.encoder.sizes import sized
from hybrid_search.errors import UsageError
from hybrid_search.filters import compile_where
from hybrid_search.results import Result
from hybrid_search.scoring import Scored, fuse, retrieve

WINDOW = 100
"""Passages asked of each leg, at least: then neither scores nor order depend on `size`."""

MAX_SIZE = 10_000
"""The largest offset + size: what servers allow by default, too."""

GROUPS = ("document", "passage")
REFINEMENTS = (None, "isolate")
OVER = ("window", "matches")


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
    compat: str | None = None
    highlight: bool = False
    sort: str | None = None
    facets: tuple[str, ...] = ()
    facets_over: str = "window"

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
        if self.compat not in compatible.COMPATS or self.facets_over not in OVER:
            asked = f"compat is {self.compat!r} (of {compatible.COMPATS}), facets_over {self.facets_over!r} (of {OVER})"
            raise UsageError(f"{asked}: one of them is not allowed")
        fusion.fusion(self.fusion)

    @property
    def window(self) -> int:
        """Passages asked of each leg."""
        return max(WINDOW, self.offset + self.size)

    def request(self, text: str, encoder: Encoder, fields: Mapping[str, str]) -> Request:
        """What a store is asked for one of the phrases, in an index of such metadata fields."""
        vector = phrase.vector(encoder, text, self.context)
        return Request(text, vector, self.window, compile_where(self.where, fields), lexical=self.alpha < 1, semantic=self.alpha > 0)


def search(backend: Backend, encoder: Encoder, calibrated: Callable[[str, int], Calibration], query: Query) -> Result:
    """Answer `query`; `calibrated` gives the calibration for passages of a precision and a dimension.

    Raises IndexMissingError, ModelError where the index is of another model, UsageError for an unknown field.
    """
    began = time.perf_counter()
    spec, fields = backend.head(query.index)
    encoder = fitting(encoder, query.index, spec)
    facets.check(query.sort, query.facets, fields)
    requests = [query.request(text, encoder, fields) for text in query.phrases]
    calibration = calibrated(spec.precision, spec.dimension)
    scored, plan = _scored(backend, requests, calibration, query)
    groups = [group for group in hits.grouped(scored, query.group_by) if query.min_score is None or group[0].score >= query.min_score]
    if query.sort:
        groups = facets.ordered(backend, query.index, groups, query.sort)
    explained = hits.Explained(query.compat or query.fusion, query.alpha, query.window, calibration) if query.explain else None
    shower = hits.Shower(backend, encoder, query.index, query.spans, query.refine, query.highlight, explained)
    page = groups[query.offset : query.offset + query.size]
    shown = shower.hits(page)
    total = len(groups) - (len(page) - len(shown))  # what was deleted while the query ran is neither shown nor counted
    counted = facets.counted(backend, query.index, requests, groups, query.facets, query.facets_over) if query.facets else None
    ran = {**_plan(query, spec, encoder.info.precision), **plan, "milliseconds": round((time.perf_counter() - began) * 1000, 1)}
    return Result(shown, total, ran, counted)


def requests(backend: Backend, encoder: Encoder, query: Query) -> list[tuple[str, dict[str, Any]]]:
    """Path and body of what a server is asked for `query`. Raises UsageError where there is no server."""
    spec, fields = backend.head(query.index)
    encoder = fitting(encoder, query.index, spec)
    request = query.request(query.phrases[0], encoder, fields)
    return backend.bodies(query.index, request, query.alpha, compatible.technique(query.compat, query.fusion), query.size, query.offset)


def fitting(encoder: Encoder, index: str, spec: IndexSpec) -> Encoder:
    """`encoder` with vectors of the size that the index has. Raises ModelError where it is not the index's model."""
    cut = sized(encoder, spec.dimension) if spec.dimension in encoder.info.sizes else encoder
    check_spec(index, spec, IndexSpec.of(cut.info, spec.policy))
    return cut


def _scored(backend: Backend, requests: Sequence[Request], calibration: Calibration, query: Query) -> tuple[list[Scored], dict[str, Any]]:
    """The passages of all phrases, each by the phrase that it fits best, best first; and what was done for them."""
    best: dict[Key, Scored] = {}
    plan: dict[str, Any] = {}
    for request in requests:
        if query.compat:
            scored, plan = compatible.scored(backend, query.index, request, query.alpha, query.fusion)
        else:
            found, plan["candidates"] = retrieve(backend, query.index, request)
            scored = fuse(found, request, query.fusion, query.alpha, calibration)
        for each in scored:
            held = best.get(each.stored.key)
            best[each.stored.key] = each if held is None or each.order < held.order else held
    return sorted(best.values(), key=lambda each: each.order), {**plan, "passages": len(best)}


def _plan(query: Query, spec: IndexSpec, precision: str) -> dict[str, Any]:
    return {
        "phrase": query.phrases[0] if len(query.phrases) == 1 else list(query.phrases),
        "index": query.index,
        "alpha": query.alpha,
        "fusion": query.fusion,
        **({"compat": query.compat} if query.compat else {}),
        "legs": [name for name, asked in (("bm25", query.alpha < 1), ("spans", query.alpha > 0)) if asked or query.compat],
        "window": query.window,
        **({"sort": query.sort} if query.sort else {}),
        "model": spec.model,
        "precision": spec.precision,
        **({"query_precision": precision} if precision != spec.precision else {}),
    }
