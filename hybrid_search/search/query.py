"""The parameters of a query with their defaults, written once, and checked when a query is made.

`Query` holds the defaults. `QueryOptions` and `RequestOptions` are the same names for callers:
`hybrid_search.query`, `Client.query` and `AsyncClient.query` take ``Unpack[QueryOptions]`` and show
each name by `expand_options`; the command line reads its defaults from `Query`.

This module is imported with the package, so it imports nothing heavy.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, TypedDict, TypeVar, Unpack

from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.errors import UsageError

WINDOW = 100
"""The fewest passages requested from a leg, so that neither scores nor order depend on `size`."""

MAX_SIZE = 10_000
"""The largest offset + size, which is also the default limit of servers."""

MAX_SPANS = 100
DEFAULT_FUSION = "calibrated"
GROUPS = ("document", "passage")
REFINEMENTS = (None, "isolate")
COMPATS = (None, "opensearch")
FACET_SCOPES = ("window", "matches")

Function = TypeVar("Function", bound=Callable[..., Any])


class RequestOptions(TypedDict, total=False):
    """The parameters of a query that change the requests to the backend; see `QueryOptions`."""

    index: str
    alpha: float
    size: int
    where: Mapping[str, Any] | None
    fusion: str
    context: str | None
    offset: int
    compat: str | None


class QueryOptions(RequestOptions, total=False):
    """The keyword parameters of a query, all optional.

    `hybrid_search.query` explains each of them; `Query` has the defaults. Programs that pass
    options on can use it in their own signatures: ``**options: Unpack[QueryOptions]``.
    """

    spans: int
    min_score: float | None
    group_by: str
    refine: str | None
    explain: bool
    highlight: bool
    sort: str | None
    facets: Sequence[str]
    facets_over: str


@dataclass(frozen=True)
class Query:
    """One query, checked when it is made.

    No slots: the defaults can be read from the class (``Query.alpha``).

    Raises:
        UsageError: If a value is not allowed. The message names the value and the allowed ones.
    """

    phrases: tuple[str, ...]
    index: str = DEFAULT_INDEX
    alpha: float = 0.5
    size: int = 10
    where: Mapping[str, Any] | None = None
    fusion: str = DEFAULT_FUSION
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

    @classmethod
    def from_options(cls, phrase: str | Sequence[str], **options: Unpack[QueryOptions]) -> Self:
        """Return the query of a public call: one phrase or several, and one facet or several."""
        values: dict[str, Any] = dict(options)
        return cls(_as_tuple(phrase), **values | {"facets": _as_tuple(values.get("facets", ()))})

    def __post_init__(self) -> None:
        _check_phrases(self.phrases)
        _check_numbers(self)
        for name, value, allowed in (
            ("group_by", self.group_by, GROUPS),
            ("refine", self.refine, REFINEMENTS),
            ("compat", self.compat, COMPATS),
            ("facets_over", self.facets_over, FACET_SCOPES),
        ):
            if value not in allowed:
                values = " or ".join(map(repr, allowed))
                raise UsageError(f"{name} is {value!r}: it must be {values}")
        from hybrid_search.search.fusion import get_fusion

        get_fusion(self.fusion)

    @property
    def window(self) -> int:
        """Return the number of passages requested from each leg."""
        return max(WINDOW, self.offset + self.size)


def _check_phrases(phrases: tuple[str, ...]) -> None:
    """Raise UsageError for no phrase, and for a blank one."""
    if not phrases or not all(isinstance(text, str) and text.strip() for text in phrases):
        raise UsageError(f"the phrase is blank ({list(phrases)!r}): say what to look for")


def _check_numbers(query: Query) -> None:
    """Raise UsageError for a number that is out of its range."""
    if not 0.0 <= query.alpha <= 1.0:
        raise UsageError(
            f"alpha is {query.alpha}: it is the weight of the span cosine, from 0 (BM25 only) to 1 "
            "(spans only)"
        )
    if query.min_score is not None and not math.isfinite(query.min_score):
        raise UsageError(f"min_score is {query.min_score}: give a finite number")
    if query.size < 1 or query.offset < 0 or query.offset + query.size > MAX_SIZE:
        raise UsageError(
            f"size is {query.size} and offset {query.offset}: size is at least 1, offset at least "
            f"0, and both together at most {MAX_SIZE}"
        )
    if not 0 <= query.spans <= MAX_SPANS:
        raise UsageError(f"spans is {query.spans}: it must be from 0 to {MAX_SPANS}")


def _as_tuple(values: str | Sequence[str]) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else tuple(values)


def expand_options(options: Any) -> Callable[[Function], Function]:
    """Return a decorator that lists the names of `options` in a function's signature.

    The function takes ``**options: Unpack[QueryOptions]``, or the same of `RequestOptions`. In its
    signature, which `help` shows, that becomes each name with its default from `Query`. Other
    keyword parameters follow.
    """

    def expand(function: Function) -> Function:
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())[:-1]
        extra = [item for item in parameters if item.kind is inspect.Parameter.KEYWORD_ONLY]
        positional = [item for item in parameters if item not in extra]
        expanded = _option_parameters(options)
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*positional, *expanded, *extra]
        )
        return function

    return expand


def _option_parameters(options: Any) -> list[inspect.Parameter]:
    """Return a keyword parameter for each of `options`, in the order of the fields of `Query`."""
    annotations = options.__annotations__
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=annotations[field.name].__forward_arg__,
        )
        for field in fields(Query)
        if field.name in annotations
    ]
