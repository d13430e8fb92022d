"""A query: all that can be asked, checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hybrid_search.backends.types import Request
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import UsageError
from hybrid_search.search import fusion, phrase_vector
from hybrid_search.search.opensearch import ranking
from hybrid_search.text.filters import compile_where

WINDOW = 100
"""Passages asked of each leg, at least: then neither scores nor order depend on `size`."""

MAX_SIZE = 10_000
"""The largest offset + size: what servers allow by default, too."""

GROUPS = ("document", "passage")

REFINEMENTS = (None, "isolate")

FACET_SCOPES = ("window", "matches")


@dataclass(frozen=True, slots=True)
class Query:
    """All that can be asked.

    Checked when made: raises UsageError naming the value and what is allowed.
    """

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
        if not self.phrases or not all(
            isinstance(text, str) and text.strip() for text in self.phrases
        ):
            raise UsageError(f"the phrase is blank ({list(self.phrases)!r}): say what to look for")
        if not 0.0 <= self.alpha <= 1.0:
            raise UsageError(
                f"alpha is {self.alpha}: it is the weight of the span cosine, from 0 (BM25 only) to 1 (spans only)"
            )
        if self.min_score is not None and not math.isfinite(self.min_score):
            raise UsageError(f"min_score is {self.min_score}: give a number")
        if not 1 <= self.size <= MAX_SIZE or self.offset < 0 or self.offset + self.size > MAX_SIZE:
            raise UsageError(
                f"size is {self.size} and offset {self.offset}: size is at least 1, offset at least 0, and both together at most {MAX_SIZE}"
            )
        if (
            self.group_by not in GROUPS
            or self.refine not in REFINEMENTS
            or not 0 <= self.spans <= 100
        ):
            values = f"group_by is {self.group_by!r} (of {GROUPS}), refine {self.refine!r} (of {REFINEMENTS}), spans {self.spans} (0 to 100)"
            raise UsageError(f"{values}: one of them is not allowed")
        if self.compat not in ranking.COMPATS or self.facets_over not in FACET_SCOPES:
            values = f"compat is {self.compat!r} (of {ranking.COMPATS}), facets_over {self.facets_over!r} (of {FACET_SCOPES})"
            raise UsageError(f"{values}: one of them is not allowed")
        fusion.get_fusion(self.fusion)

    @property
    def window(self) -> int:
        """Passages asked of each leg."""
        return max(WINDOW, self.offset + self.size)

    def request(self, text: str, encoder: Encoder, fields: Mapping[str, str]) -> Request:
        """What a store is asked for one of the phrases, in an index of such metadata fields."""
        vector = phrase_vector.query_vector(encoder, text, self.context)
        return Request(
            text,
            vector,
            self.window,
            compile_where(self.where, fields),
            lexical=self.alpha < 1,
            semantic=self.alpha > 0,
        )
