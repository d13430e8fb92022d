"""The parameters of a query: defined once with their defaults, and validated.

`Query` has the defaults. `QueryOptions` and `RequestOptions` declare the same names for callers:
`hybrid_search.query`, `Client.query` and `AsyncClient.query` take ``Unpack[QueryOptions]``, and
`expand_options` puts each name into their signatures. The command line reads its defaults from
`Query`.

The package imports this module at once, so it must not import anything heavy.
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
"""Possible sizes of the window of ranked documents: a query takes the first that holds `size`.

The window does not depend on the page, so all pages of a size are slices of one list, and so are
all pages of sizes with the same window.
"""

WINDOW, MAX_SIZE = WINDOWS[0], WINDOWS[-1]

MAX_SPANS = 100
MAX_FEEDBACK = 100
DOCUMENT_SPANS = 10
"""Default number of spans listed for an opened document."""

DEFAULT_FUSION = "calibrated"
RANGES: dict[str, tuple[float, float]] = {
    "alpha": (0.0, 1.0),
    "size": (1, MAX_SIZE),
    "offset": (0, MAX_SIZE - 1),
    "spans": (0, MAX_SPANS),
    "feedback": (0, MAX_FEEDBACK),
    "min_probability": (0.0, 1.0),
}
"""The smallest and largest value of each numeric parameter."""

CHOICES: dict[str, tuple[str | bool | None, ...]] = {
    "group_by": ("document", "passage"),
    "spans_by": ("score", "cosine"),
    "refine": (None, "isolate"),
    "facets_over": ("window", "matches"),
    "explain": (False, True),
    "highlight": (False, True),
}
"""The parameters with a few allowed values; for `fusion` see `search.fusion`."""

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
"""Numeric parameters, each with the type it is converted to."""


@dataclass(frozen=True)
class Query:
    """One query, validated on construction.

    Without slots, so that defaults can be read from the class (``Query.alpha``).

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
        """Return the query of a public call, which may take one or several phrases and facets.

        Raises:
            TypeError: If an option is not a parameter of a query.
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
        for name, kind in NUMBERS.items():  # JSON does not support numpy numbers and fractions
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
        """Return the most hits on all pages, which is also how many documents each leg proposes."""
        return next(window for window in WINDOWS if self.size <= window)

    @property
    def page(self) -> slice:
        """Return the slice of the ranked list that is on the page."""
        return slice(self.offset, min(self.offset + self.size, self.window))

    @property
    def depth(self) -> int | None:
        """Return how many top documents must be ranked exactly, None for the whole window.

        That is up to the last hit of the page. Sorting, facets, `min_score`, `min_probability`, and
        fusions whose scores depend on other passages need the whole window.
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
    """Raise UsageError if there is no phrase, too many phrases, or an invalid phrase."""
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
    """Raise UsageError for a value that is not a number, or out of range."""
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
    """Raise UsageError unless `values` are at most `MAX_PHRASES` values that pass `check`."""
    if not isinstance(values, tuple):
        check(name, values)
    if len(values) > parameters.MAX_PHRASES:
        raise UsageError(
            f"{name} is a list of {len(values)}: give at most {parameters.MAX_PHRASES}"
        )
    for value in values:
        check(name, value)


def _check_facets(facets: Any) -> None:
    """Raise UsageError unless `facets` are valid field names."""
    for name in facets if isinstance(facets, tuple) else (facets,):
        parameters.check_text("facets", name)


def _explain_unknown(name: str) -> str:
    """Return the message for an unknown parameter, with the one probably meant."""
    hint = hint_name(name, list(QueryOptions.__annotations__))
    return f"hybrid_search.query() got an unexpected keyword argument {name!r}: {hint}"


def _as_tuple(values: Any) -> Any:
    """Return one or several strings as a tuple; anything else unchanged, to be refused later."""
    if isinstance(values, str):
        return (values,)
    is_list = isinstance(values, Collection) and not isinstance(values, bytes | Mapping)
    return tuple(values) if is_list else values


def expand_options(options: Any) -> Callable[[Function], Function]:
    """Return a decorator that lists the names of `options` in a function's signature.

    The function takes ``**options: Unpack[QueryOptions]``, or of `RequestOptions`. In its
    signature, as shown by `help`, each name appears with its default from `Query`, before other
    keyword parameters.
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
    """Return a keyword parameter for each of `options`, in the field order of `Query`."""
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
