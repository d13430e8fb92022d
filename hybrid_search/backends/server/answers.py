"""What servers answer, as far as it is read: a shape for each kind of request.

The bodies of these requests are in `request_bodies`, `head_cache`, `index_size`, `scan`, `writer`
and `next_version`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NotRequired

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    Json,
    NonNegativeInt,
    PositiveInt,
    StringConstraints,
)
from typing_extensions import TypedDict  # pydantic reads that of the library from 3.12 on

from hybrid_search.backends.server.transport.shape import Shape
from hybrid_search.backends.types import IndexSpec

Answer = dict[str, Any]

_PassageId = Annotated[str, StringConstraints(pattern=r"#[0-9]{1,18}$")]
_SortValues = Annotated[list[Any], Field(min_length=1)]


_Annotated: Any = Annotated
_Dict: Any = dict
_Json: Any = Json
_List: Any = list
"""These take types that are made by `_object`, which a type checker does not see."""


def _object(**parts: Any) -> Any:
    """Return the type of an object with these parts; others are left out."""
    create: Any = TypedDict
    return create("Object", parts)


# Indexes


class FieldMapping(TypedDict):
    """A field of an index; an object has no type."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    type: NotRequired[str]
    ignore_above: NotRequired[int]
    fields: NotRequired[dict[str, FieldMapping]]
    properties: NotRequired[dict[str, FieldMapping]]


_Mapping = _object(
    _meta=NotRequired[dict[str, Any]],
    dynamic=NotRequired[str | bool],
    properties=NotRequired[dict[str, FieldMapping]],
)
_Settings = _object(settings=dict[str, Any], defaults=NotRequired[dict[str, Any]])

MAPPINGS = Shape[Answer](_Annotated[_Dict[str, _object(mappings=_Mapping)], Field(min_length=1)])
"""The mapping of each index behind a name."""
HEADS = Shape[Answer](
    _Annotated[
        _Dict[str, _object(mappings=_Mapping, aliases=_Dict[str, dict[str, Any]])],
        Field(min_length=1),
    ]
)
"""The mapping and the aliases of each index behind a name."""
FOREIGN_MAPPINGS = Shape[Answer](_Dict[str, _object(mappings=_Mapping)])
"""The mapping of each index that a name or pattern of another program stands for."""
OUR_MAPPINGS = Shape[Answer](
    _Dict[str, _object(mappings=_object(_meta=_object(hybrid_search=dict[str, Any])))]
)
"""The mapping of each index of this project, without all but our part of its ``_meta``."""
MATCH_MAPPINGS = Shape[Answer](
    _Dict[str, _object(mappings=_object(_meta=NotRequired[dict[str, Any]]))]
)
"""The mapping of an index of matches, or of another that has its name."""
UUIDS = Shape[Answer](_Dict[str, _object(settings=dict[str, Any])])
"""Every version of an index; none before the first."""
ALIASES = Shape[Answer](_Dict[str, _object(aliases=dict[str, Any])])
"""The aliases of each index."""
ACKNOWLEDGED = Shape[Answer](_object(acknowledged=bool))
"""An index or alias was made, changed or removed."""
META = Shape[Answer](_object(hybrid_search=dict[str, Any], options=NotRequired[dict[str, Any]]))
"""What the mapping of an index of this project has in its ``_meta``."""
SPEC = Shape[IndexSpec](IndexSpec)
SETTINGS = Shape[Answer](_Annotated[_Dict[str, _Settings], Field(min_length=1)])
"""The settings of each index behind a name."""


def settings_reader(*names: str) -> Callable[[Any], dict[str, int]]:
    """Return a reader of these settings of one index; all of them are whole numbers."""
    numbers = Shape[dict[str, int]](_object(**dict.fromkeys(names, NonNegativeInt)))

    def read(answer: Any) -> dict[str, int]:
        index_settings = next(iter(SETTINGS.read(answer).values()))
        return numbers.read({**index_settings.get("defaults", {}), **index_settings["settings"]})

    return read


# Hits


def _hits(**parts: Any) -> Shape[Answer]:
    """Return the shape of the answer to a search with these parts in each hit."""
    return Shape(_object(hits=_object(hits=_List[_object(**parts)])))


_Score = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""A number; strict, else ``true`` would be the score 1."""


_TurnSpeaker = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}(:|$)")]
_key = {"document_id": tuple[str], "ordinal": tuple[NonNegativeInt]}
_Key = _object(**_key)
_turns = {"turn_speakers": NotRequired[list[_TurnSpeaker]]}
_Codes = _object(**_key, **_turns, tokens=NotRequired[list[str]])
_ShortCodes = _object(**_key, **_turns, short_codes=NotRequired[list[str]])
_BestSpans = _object(**_key, best_spans=tuple[_Score, _Score])


_Offset = Annotated[int, Field(ge=0, lt=2**31)]
"""A place in a document, counted in characters; it is added to offsets of 32 bits."""


_Turn: Any = _object(turn=int, start=int, end=int)
_TURNS = Shape[Any](_Json[_List[_Turn]])


def _check_layout(layout: str) -> str:
    _TURNS.read(layout)
    return layout


_Layout = Annotated[str, AfterValidator(_check_layout)]
_Content = _object(start=_Offset, text=str, layout=_Layout, metadata=NotRequired[dict[str, Any]])


class _CopiedSource(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    start: _Offset
    text: str
    layout: _Layout
    metadata: NotRequired[dict[str, Any]]
    source_hash: str


KEYS = _hits(fields=_Key)
"""The shapes of hits are named by what is requested of a hit: here with `request_bodies.KEYS`."""
CODES = _hits(fields=_Codes)
SCORED_KEYS = _hits(fields=_Key, _score=_Score)
SHORT_CODES = _hits(fields=_ShortCodes, _score=_Score)
BEST_SPANS = _hits(fields=_BestSpans, _score=_Score)
_source_hash = {"_index": str, "fields": NotRequired[_object(source_hash=tuple[str])]}
SOURCE_HASHES = _hits(**_source_hash)
CONTENTS = _hits(_id=_PassageId, _source=_Content)
CODES_AND_CONTENTS = _hits(_id=_PassageId, _source=_Content, fields=_Codes)
HIGHLIGHTS = _hits(
    _id=_PassageId,
    _source=_object(text=str),
    highlight=NotRequired[_object(text=tuple[str])],
)

MATCH_IDS = _hits(_id=str)

# hits of a listing also say where they stand in its order: the next page begins behind the last
LISTED_IDS = _hits(_id=_PassageId, sort=_SortValues)
LISTED_KEYS = _hits(fields=_Key, sort=_SortValues)
LISTED_COLUMNS = _hits(
    fields=_object(
        **_key,
        passages=tuple[NonNegativeInt],
        source_hash=tuple[str],
        tokens=NotRequired[list[str]],
        short_codes=NotRequired[list[str]],
    ),
    sort=_SortValues,
)
LISTED_CONTENTS = _hits(_id=_PassageId, _source=_Content, sort=_SortValues)
SCANNED_CODES = _hits(
    fields=_object(**_key, start=tuple[_Offset], tokens=NotRequired[list[str]]), sort=_SortValues
)
LISTED_SOURCES = _hits(_id=_PassageId, _source=_CopiedSource, fields=_Codes, sort=_SortValues)


RESPONSES = Shape[Answer](_object(responses=list[dict[str, Any]]))
"""The answers to several searches in one request."""
FAILURE = Shape[Answer](_object(status=int))
"""The answer to one of several searches that failed."""


# Counts


_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Value = _object(value=_Amount)
_Count = _object(value=NonNegativeInt)


def _buckets(**parts: Any) -> Any:
    return _object(buckets=_List[_object(**parts)])


INDEX_SIZE = Shape[Answer](_object(hits=_object(total=_Count), _shards=_object(total=PositiveInt)))
"""The answer to `index_size.COUNTING`."""
SUM = Shape[Answer](_object(aggregations=_object(sum=_Value)))
COUNTS = Shape[Answer](
    _object(
        hits=_object(total=_Count),
        aggregations=_object(
            documents=_object(doc_count=NonNegativeInt),
            spans=_Value,
            written_at=_object(value=_Amount | None),
        ),
    )
)
"""The answer to `index_size.COUNTS`."""
STORED = Shape[Answer](
    _object(_all=_object(primaries=_object(store=_object(size_in_bytes=NonNegativeInt))))
)
"""How many bytes an index takes, without replicas."""
VERSIONS = Shape[Answer](
    _object(
        aggregations=_object(
            documents=_buckets(
                key=str,
                hashes=_buckets(
                    key=str,
                    doc_count=NonNegativeInt,
                    passages=_object(value=_Amount | None),
                ),
            )
        )
    )
)
"""The passages of each document by version, for the writer."""
_Facet = _buckets(
    key=str | bool | int | FiniteFloat, key_as_string=NotRequired[str], documents=_Count
)


@cache
def facets(count: int) -> Shape[Answer]:
    """Return the shape of the answer to `request_bodies.facets_body` for as many fields."""
    numbers = map(str, range(count))
    return Shape(_object(aggregations=_object(**dict.fromkeys(numbers, _Facet))))
