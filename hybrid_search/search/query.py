"""The parameters of a query: `QueryOptions` is the table, `Query` one query, validated.

Signatures, the command line, HTTP, the tools for agents and the tables of the documentation are
made from `QueryOptions`. A new parameter is a field there, and its name in `Query`: Python takes
the types of keyword arguments from a TypedDict alone, and makes no attributes of one.

The package imports this module at once, so it must not import anything heavy.
"""

# The annotations of a table are read at run time, so they are not postponed here.
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypedDict, Unpack, cast

from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.errors import UsageError, show_value
from hybrid_search.parameters import (
    JSON,
    MAX_CONTEXT,
    MAX_PHRASE,
    MAX_PHRASES,
    MAX_SPEAKER,
    Parameter,
    as_tuple,
    check_phrase,
    check_speaker,
    complete,
    read_table,
)
from hybrid_search.text.filters import check_where

WINDOWS = (100, 1_000, 10_000)
"""Possible sizes of the window of ranked documents: a query takes the first that holds `size`.

The window does not depend on the page, so all pages of a size are slices of one list, and so are
all pages of sizes with the same window.
"""

WINDOW, MAX_SIZE = WINDOWS[0], WINDOWS[-1]

DOCUMENT_SPANS = 10
"""Default number of spans listed for an opened document."""

FUSION_NAMES = ("calibrated", "min_max", "l2", "z_score", "rrf")
"""The names in `hybrid_search.search.fusion`, which loads numpy; the default first."""

DEFAULT_FUSION = FUSION_NAMES[0]
DOCUMENT, PASSAGE = "document", "passage"
"""The kinds of hits that are not grouped by a metadata field."""

ASKING, SHOWING = "Asking", "Showing"
"""Panels of the command line's help."""


class QueryOptions(TypedDict, total=False):
    """The keyword parameters of a query, all optional.

    `hybrid_search.query` explains each of them. Programs that pass options on can use it in their
    own signatures: ``**options: Unpack[QueryOptions]``.
    """

    index: Annotated[str, Parameter("The name of the index.", default=DEFAULT_INDEX)]
    alpha: Annotated[
        float,
        Parameter(
            "The weight of the span cosine: 1 is spans only, 0 is BM25 only.",
            default=0.5,
            limits=(0, 1),
        ),
    ]
    size: Annotated[
        int, Parameter("How many hits to return.", default=10, limits=(1, MAX_SIZE), see="pages")
    ]
    where: Annotated[
        Mapping[str, Any] | None,
        Parameter(
            "Conditions on metadata, all of which a document must meet.",
            'A list allows any of its values, as in {"tier": ["gold", "silver"]}. Comparisons are '
            'gt, gte, lt and lte, as in {"date": {"gte": "2026-01-01"}}, ne for none of some, and '
            "exists. Dates and numbers are compared by value; id is the document's id.",
            check=lambda _, value: check_where(value),
            example={"sector": "bank"},
            see="conditions",
            narrows=True,
        ),
    ]
    server_filter: Annotated[
        Mapping[str, Any] | None,
        Parameter(
            "A query in the server's own language (DSL), which a document must match.",
            "Only for an index on a server.",
            check=lambda _, value: _check_filter(value),
            example={"term": {"metadata.sector": "bank"}},
            narrows=True,
            panel=ASKING,
            value=JSON,
            is_local=True,
        ),
    ]
    fusion: Annotated[
        str,
        Parameter(
            f"How the two scores become one: {', '.join(FUSION_NAMES[:-1])} or {FUSION_NAMES[-1]}.",
            default=DEFAULT_FUSION,
            choices=FUSION_NAMES,
            panel=ASKING,
        ),
    ]
    context: Annotated[
        str | None,
        Parameter(
            "A text that contains the phrase, to show in which sense it is meant.",
            longest=MAX_CONTEXT,
            panel=ASKING,
            value="TEXT",
        ),
    ]
    spans: Annotated[
        int,
        Parameter(
            "How many of its best spans to return with each hit.",
            "None overlaps another.",
            default=3,
            limits=(0, 100),
        ),
    ]
    spans_by: Annotated[
        str,
        Parameter(
            "How to choose spans and rank hits: by score (cosine and ends of clauses) or cosine.",
            "A model without a prior always uses cosine.",
            default="score",
            choices=("score", "cosine"),
            panel=ASKING,
        ),
    ]
    min_score: Annotated[
        float | None,
        Parameter("Leave out hits with a lower fused score.", narrows=True, panel=ASKING),
    ]
    min_probability: Annotated[
        float | None,
        Parameter(
            "Show only spans that express the phrase with at least this probability.",
            "Hits without such a span are left out. Spans then have a probability, as matches of "
            "mine have.",
            limits=(0, 1),
            see="probabilities",
            narrows=True,
            panel=ASKING,
        ),
    ]
    offset: Annotated[
        int,
        Parameter(
            "How many hits to skip before the first one.",
            "Pages of up to 100 hits are slices of the best 100, larger pages of the best 1,000 or "
            "10,000.",
            default=0,
            limits=(0, math.inf),
            see="pages",
            panel=SHOWING,
        ),
    ]
    group_by: Annotated[
        str,
        Parameter(
            "What a hit is: a document, a passage, or the best document for each value of a FIELD.",
            "FIELD is a metadata field. The documents of all pages are grouped; those without the "
            "field stand for themselves.",
            default=DOCUMENT,
            example="sector",
            see="groups",
            panel=SHOWING,
            value="FIELD",
        ),
    ]
    refine: Annotated[
        str | None,
        Parameter(
            "isolate: encode each span of a hit by itself, and rank the hit's spans again.",
            "Hits and their scores do not change.",
            choices=(None, "isolate"),
            panel=ASKING,
        ),
    ]
    feedback: Annotated[
        int,
        Parameter(
            "Search again with the best spans of this many documents, usually 10.",
            "The query vector is moved halfway to them. This finds more paraphrases and takes "
            "longer; leave it off for a question with one answer.",
            default=0,
            limits=(0, 100),
            see="feedback",
            panel=ASKING,
        ),
    ]
    explain: Annotated[
        bool, Parameter("Add the numbers that each score is made of.", default=False, panel=SHOWING)
    ]
    highlight: Annotated[
        bool,
        Parameter("Add the offsets of the words that BM25 matched.", default=False, panel=SHOWING),
    ]
    sort: Annotated[
        str | None,
        Parameter(
            "Order the hits of all pages by a metadata field, or id; -FIELD: the largest first.",
            "Hits without the field come last.",
            example="-date",
            panel=SHOWING,
            value="FIELD",
        ),
    ]
    facets: Annotated[
        str | Sequence[str] | None,
        Parameter(
            "Count the values of a metadata field.",
            "The result has the number of documents for each of the 100 most frequent values.",
            default=(),
            example=["sector"],
            panel=SHOWING,
            value="FIELD",
            option="--facet",
        ),
    ]
    facets_over: Annotated[
        str,
        Parameter(
            "Which documents facets count: window, those of all pages, or matches, all in which a "
            "term occurs.",
            default="window",
            choices=("window", "matches"),
            panel=SHOWING,
        ),
    ]
    speaker: Annotated[
        str | Sequence[str] | None,
        Parameter(
            "Count only what this speaker says.",
            "Names are compared exactly. BM25 still counts the words of every speaker in a passage "
            "where one of them speaks.",
            default=(),
            longest=MAX_SPEAKER,
            check=check_speaker,
            example="customer",
            see="whose-spans-and-which-count",
            narrows=True,
        ),
    ]
    not_: Annotated[
        str | Sequence[str] | None,
        Parameter(
            "Not meant: leave out spans nearer to this phrase.",
            'Write it in full, such as "have not received refund", as for a topic.',
            default=(),
            longest=MAX_PHRASE,
            check=check_phrase,
            see="whose-spans-and-which-count",
            narrows=True,
            value="PHRASE",
            option="--not",
        ),
    ]


PARAMETERS = read_table(QueryOptions)
DEFAULTS = cast("QueryOptions", {name: item.default for name, item in PARAMETERS.items()})


class SpanOptions(TypedDict, total=False):
    """The keyword parameters of `best_spans`."""

    k: Annotated[
        int, Parameter("How many spans to return.", default=1, limits=(1, math.inf), option="--k")
    ]
    context: Annotated[str | None, PARAMETERS["context"]]
    spans_by: Annotated[str, PARAMETERS["spans_by"]]
    speaker: Annotated[str | Sequence[str] | None, PARAMETERS["speaker"]]
    not_: Annotated[str | Sequence[str] | None, PARAMETERS["not_"]]


class DocumentOptions(TypedDict, total=False):
    """The keyword parameters of `open_document`."""

    index: Annotated[str, PARAMETERS["index"]]
    alpha: Annotated[float, PARAMETERS["alpha"]]
    context: Annotated[str | None, PARAMETERS["context"]]
    spans: Annotated[int, replace(PARAMETERS["spans"], default=DOCUMENT_SPANS)]
    spans_by: Annotated[str, PARAMETERS["spans_by"]]


@dataclass(frozen=True, init=False)
class Query:
    """One query, validated on construction.

    Args:
        phrases: The phrase, or several.
        **options: The other parameters.

    Raises:
        UsageError: If a value is not allowed. The message names the value and the allowed ones.
        TypeError: If an option is not a parameter of a query.
    """

    phrases: tuple[str, ...]
    index: str
    alpha: float
    size: int
    where: Mapping[str, Any] | None
    server_filter: Mapping[str, Any] | None
    fusion: str
    context: str | None
    spans: int
    spans_by: str
    min_score: float | None
    min_probability: float | None
    offset: int
    group_by: str
    refine: str | None
    feedback: int
    explain: bool
    highlight: bool
    sort: str | None
    facets: tuple[str, ...]
    facets_over: str
    speaker: tuple[str, ...]
    not_: tuple[str, ...]

    def __init__(self, phrases: str | Sequence[str], **options: Unpack[QueryOptions]) -> None:
        values = complete(QueryOptions, options, "hybrid_search.query")
        for name, value in {"phrases": _check_phrases(as_tuple(phrases)), **values}.items():
            object.__setattr__(self, name, value)
        if self.offset >= self.window:
            larger = f"ask for {self.window + 1} or more at once, or " * (self.window < MAX_SIZE)
            raise UsageError(
                f"offset is {show_value(self.offset)}: with a size of {self.size} the best "
                f"{self.window} hits are listed. For more of them {larger}use mine"
            )

    @property
    def group_field(self) -> str | None:
        """Return the metadata field that hits are grouped by, None if it is none."""
        return None if self.group_by in (DOCUMENT, PASSAGE) else self.group_by

    @property
    def window(self) -> int:
        """Return the most hits on all pages, which is also how many documents each leg proposes."""
        return next(window for window in WINDOWS if self.size <= window)

    @property
    def page(self) -> slice:
        """Return the slice of the ranked list that is on the page."""
        return slice(self.offset, min(self.offset + self.size, self.window))


def _check_filter(value: Any) -> None:
    """Raise UsageError unless a filter is an object of JSON."""
    try:
        is_object = isinstance(value, Mapping) and bool(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        is_object = False
    if not is_object:
        raise UsageError(
            f"server_filter is {show_value(value)}: give a query of the server as an object, as in "
            "{'term': {'sector': 'bank'}}"
        )


def _check_phrases(phrases: Any) -> tuple[str, ...]:
    """Return the phrases; raise UsageError if there are none, too many, or an invalid one."""
    if not isinstance(phrases, tuple):
        check_phrase("phrase", phrases)
    if not phrases:
        raise UsageError("the phrase is blank ([]): say what to look for")
    if len(phrases) > MAX_PHRASES:
        raise UsageError(f"phrase is a list of {len(phrases)}: give at most {MAX_PHRASES} phrases")
    for phrase in phrases:
        check_phrase("phrase", phrase)
    checked: tuple[str, ...] = phrases
    return checked
