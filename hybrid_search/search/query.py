"""The parameters of a query with their defaults, written once, and checked when a query is made.

`Query` holds the defaults. `QueryOptions` and `RequestOptions` are the same names for callers:
`hybrid_search.query`, `Client.query` and `AsyncClient.query` take ``Unpack[QueryOptions]`` and show
each name by `expand_options`; the command line reads its defaults from `Query`.

This module is imported with the package, so it imports nothing heavy.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, TypedDict, TypeVar, Unpack

from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.errors import UsageError, show_value
from hybrid_search.search import parameters
from hybrid_search.text.filters import check_where
from hybrid_search.text.near_names import hint_name

WINDOWS = (100, 1_000, 10_000)
"""How many documents a query may rank: as few as hold `size`, whatever the page.

So all pages of a size are cuts of one list, and so are those of all sizes up to the first of these.
"""

WINDOW, MAX_SIZE = WINDOWS[0], WINDOWS[-1]

MAX_SPANS = 100
MAX_FEEDBACK = 100
DOCUMENT_SPANS = 10
"""How many spans of an opened document are listed, unless the caller says otherwise."""

DEFAULT_FUSION = "calibrated"
RANGES: dict[str, tuple[float, float]] = {
    "alpha": (0.0, 1.0),
    "size": (1, MAX_SIZE),
    "offset": (0, MAX_SIZE - 1),
    "spans": (0, MAX_SPANS),
    "feedback": (0, MAX_FEEDBACK),
    "min_probability": (0.0, 1.0),
}
"""The smallest and the largest value of each parameter that is a number."""

CHOICES: dict[str, tuple[str | bool | None, ...]] = {
    "group_by": ("document", "passage"),
    "spans_by": ("score", "cosine"),
    "refine": (None, "isolate"),
    "facets_over": ("window", "matches"),
    "explain": (False, True),
    "highlight": (False, True),
}
"""The parameters that have one of a few values; `fusion` is another, see `search.fusion`."""

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
    speaker: str | Sequence[str] | None
    not_: str | Sequence[str] | None


class QueryOptions(RequestOptions, total=False):
    """The keyword parameters of a query, all optional.

    `hybrid_search.query` explains each of them; `Query` has the defaults. Programs that pass
    options on can use it in their own signatures: ``**options: Unpack[QueryOptions]``.
    """

    spans: int
    spans_by: str
    min_score: float | None
    min_probability: float | None
    group_by: str
    refine: str | None
    feedback: int
    explain: bool
    highlight: bool
    sort: str | None
    facets: Sequence[str]
    facets_over: str


NUMBERS = {"alpha": float, "size": int, "offset": int, "spans": int, "feedback": int}
"""Parameters that may be given as any number of their kind."""


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
    spans_by: str = "score"
    min_score: float | None = None
    min_probability: float | None = None
    offset: int = 0
    group_by: str = "document"
    refine: str | None = None
    feedback: int = 0
    explain: bool = False
    highlight: bool = False
    sort: str | None = None
    facets: tuple[str, ...] = ()
    facets_over: str = "window"
    speaker: tuple[str, ...] = ()
    not_: tuple[str, ...] = ()

    @classmethod
    def from_options(cls, phrase: str | Sequence[str], **options: Unpack[QueryOptions]) -> Self:
        """Return the query of a public call: one phrase or several, and one facet or several.

        Raises:
            TypeError: If there is no parameter of a name.
        """
        values: dict[str, Any] = dict(options)
        for name in values.keys() - QueryOptions.__annotations__.keys():
            raise TypeError(_explain_unknown(name))
        for name in ("facets", "speaker", "not_"):
            several = values.get(name)
            values[name] = () if several is None else _as_tuple(several)
        return cls(_as_tuple(phrase), **values)

    def __post_init__(self) -> None:
        _check_phrases(self.phrases)
        parameters.check_text("index", self.index)
        _check_numbers(self)
        for name, kind in NUMBERS.items():  # numpy's numbers and fractions are none of JSON's
            object.__setattr__(self, name, kind(getattr(self, name)))
        check_where(self.where)
        parameters.check_context("context", self.context)
        if self.sort is not None:
            parameters.check_text("sort", self.sort)
        _check_facets(self.facets)
        _check_several("speaker", self.speaker, parameters.check_speaker)
        _check_several("not", self.not_, parameters.check_phrase)
        for name, choices in CHOICES.items():
            parameters.check_choice(name, getattr(self, name), choices)
        parameters.check_text("fusion", self.fusion)
        from hybrid_search.search.fusion import get_fusion

        get_fusion(self.fusion)

    @property
    def window(self) -> int:
        """Return how many hits all pages have at most, and how many documents a leg proposes."""
        return next(window for window in WINDOWS if self.size <= window)

    @property
    def page(self) -> slice:
        """Return which hits of the list are on the page."""
        return slice(self.offset, min(self.offset + self.size, self.window))

    @property
    def depth(self) -> int | None:
        """Return how many documents have to be right, None if that is all of the window.

        They are those up to the last of the page. Order by metadata, facets, a least score or
        probability, and fusions whose scores depend on the other passages, take all.
        """
        depends_on_all = (
            self.fusion != DEFAULT_FUSION
            or self.sort
            or self.min_score is not None
            or self.min_probability is not None
            or (self.facets and self.facets_over == "window")
        )
        return None if depends_on_all else self.page.stop


def _check_phrases(phrases: Any) -> None:
    """Raise UsageError for no phrase, for too many, and for one that is no phrase."""
    if not isinstance(phrases, tuple):
        parameters.check_phrase("phrase", phrases)
    if not phrases:
        raise UsageError("the phrase is blank ([]): say what to look for")
    if len(phrases) > parameters.MAX_PHRASES:
        raise UsageError(
            f"phrase is a list of {len(phrases)}: give at most {parameters.MAX_PHRASES} phrases"
        )
    for phrase in phrases:
        parameters.check_phrase("phrase", phrase)


def _check_numbers(query: Query) -> None:
    """Raise UsageError for what is no number, and for one that is out of its range."""
    parameters.check_number(
        "alpha",
        query.alpha,
        "the weight of the span cosine, from 0 (BM25 only) to 1 (spans only)",
        *RANGES["alpha"],
    )
    if query.min_score is not None:
        largest = sys.float_info.max
        parameters.check_number("min_score", query.min_score, "a finite number", -largest, largest)
    if query.min_probability is not None:
        parameters.check_number(
            "min_probability",
            query.min_probability,
            "a number from 0 to 1",
            *RANGES["min_probability"],
        )
    for name in ("size", "spans", "feedback"):
        parameters.check_integer(name, getattr(query, name), *RANGES[name])
    parameters.check_integer("offset", query.offset, RANGES["offset"][0])
    if query.offset >= query.window:
        larger = f"ask for {query.window + 1} or more at once, or " * (query.window < MAX_SIZE)
        raise UsageError(
            f"offset is {show_value(query.offset)}: with a size of {query.size} the best "
            f"{query.window} hits are listed. For more of them {larger}use mine"
        )


def _check_several(name: str, values: Any, check: Callable[[str, Any], None]) -> None:
    """Raise UsageError unless `values` are at most `MAX_PHRASES` that pass a check."""
    if not isinstance(values, tuple):
        check(name, values)
    if len(values) > parameters.MAX_PHRASES:
        raise UsageError(
            f"{name} is a list of {len(values)}: give at most {parameters.MAX_PHRASES}"
        )
    for value in values:
        check(name, value)


def _check_facets(facets: Any) -> None:
    """Raise UsageError unless `facets` are names of fields."""
    for name in facets if isinstance(facets, tuple) else (facets,):
        parameters.check_text("facets", name)


def _explain_unknown(name: str) -> str:
    """Return the message for a parameter that a query does not have, with the one that is meant."""
    hint = hint_name(name, list(QueryOptions.__annotations__))
    return f"hybrid_search.query() got an unexpected keyword argument {name!r}: {hint}"


def _as_tuple(values: Any) -> Any:
    """Return one string or several as a tuple, and anything else as it is, to be refused."""
    if isinstance(values, str):
        return (values,)
    is_list = isinstance(values, Collection) and not isinstance(values, bytes | Mapping)
    return tuple(values) if is_list else values


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
