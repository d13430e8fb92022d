"""What servers answer, as far as it is read.

An answer to a search is checked by what its body asks for (`read_search`); answers to other
requests have a shape each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
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
from typing_extensions import TypedDict

from hybrid_search.backends.server.transport.shape import (
    Items,
    Named,
    Shape,
    Some,
    make_object,
)
from hybrid_search.backends.types import IndexSpec

Answer = dict[str, Any]

# Indexes


class FieldMapping(TypedDict):
    """A field of an index; an object has no type."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    type: NotRequired[str]
    ignore_above: NotRequired[int]
    fields: NotRequired[dict[str, FieldMapping]]
    properties: NotRequired[dict[str, FieldMapping]]


_Mapping = make_object(
    _meta=NotRequired[dict[str, Any]],
    dynamic=NotRequired[str | bool],
    properties=NotRequired[dict[str, FieldMapping]],
)
_Head = make_object(mappings=_Mapping, aliases=Named[str, dict[str, Any]])
_Settings = make_object(settings=dict[str, Any], defaults=NotRequired[dict[str, Any]])

FOREIGN_MAPPINGS = Shape[Answer](Named[str, make_object(mappings=_Mapping)])
"""The mapping of each index that a name or pattern of another program stands for."""
MAPPINGS = Shape[Answer](Some[Named[str, make_object(mappings=_Mapping)], Field(min_length=1)])
"""The mapping of each index behind a name."""
HEADS = Shape[Answer](Some[Named[str, _Head], Field(min_length=1)])
"""The mapping and the aliases of each index behind a name."""
OUR_MAPPINGS = Shape[Answer](
    Named[str, make_object(mappings=make_object(_meta=make_object(hybrid_search=dict[str, Any])))]
)
"""The mapping of each index of this project, without all but our part of its ``_meta``."""
UUIDS = Shape[Answer](Named[str, make_object(settings=dict[str, Any])])
"""Every version of an index; none before the first."""
ALIASES = Shape[Answer](Named[str, make_object(aliases=dict[str, Any])])
"""The aliases of each index."""
ACKNOWLEDGED = Shape[Answer](make_object(acknowledged=bool))
"""An index or alias was made, changed or removed."""
META = Shape[Answer](make_object(hybrid_search=dict[str, Any], options=NotRequired[dict[str, Any]]))
"""What the mapping of an index of this project has in its ``_meta``."""
SPEC = Shape[IndexSpec](IndexSpec)
SETTINGS = Shape[Answer](Some[Named[str, _Settings], Field(min_length=1)])
"""The settings of each index behind a name."""
_Bytes = make_object(store=make_object(size_in_bytes=NonNegativeInt))
STORED = Shape[Answer](make_object(_all=make_object(primaries=_Bytes)))
"""How many bytes an index takes, without replicas."""


def settings_reader(*names: str) -> Callable[[Any], dict[str, int]]:
    """Return a reader of these settings of one index; all of them are whole numbers."""
    parts: dict[str, Any] = dict.fromkeys(names, NonNegativeInt)
    numbers = Shape[dict[str, int]](make_object(**parts))

    def read(answer: Any) -> dict[str, int]:
        index_settings = next(iter(SETTINGS.read(answer).values()))
        return numbers.read({**index_settings.get("defaults", {}), **index_settings["settings"]})

    return read


# Searches

_Json: Any = Json
_TURNS = Shape[Any](_Json[Items[make_object(turn=int, start=int, end=int)]])


def _check_layout(layout: str) -> str:
    _TURNS.read(layout)
    return layout


_Offset = Annotated[int, Field(ge=0, lt=2**31)]
"""A place in a document, counted in characters; it is added to offsets of 32 bits."""
_Score = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""A number; strict, else ``true`` would be the score 1."""
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_PassageId = Annotated[str, StringConstraints(pattern=r"#[0-9]{1,18}$")]
_TurnSpeaker = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}(:|$)")]

_COLUMNS: Mapping[str, Any] = {
    "document_id": tuple[str],
    "ordinal": tuple[NonNegativeInt],
    "passages": tuple[NonNegativeInt],
    "source_hash": tuple[str],
    "start": tuple[_Offset],
    "best_spans": tuple[_Score, _Score],
    "tokens": NotRequired[list[str]],
    "short_codes": NotRequired[list[str]],
    "turn_speakers": NotRequired[list[_TurnSpeaker]],
}
_SOURCE: Mapping[str, Any] = {
    "start": _Offset,
    "text": str,
    "layout": Annotated[str, AfterValidator(_check_layout)],
    "metadata": NotRequired[dict[str, Any]],
    "source_hash": str,
}
_NUMBERS: Mapping[str, Any] = {
    "filter": {"doc_count": NonNegativeInt},
    "cardinality": {"value": NonNegativeInt},
    "sum": {"value": _Amount},
    "max": {"value": _Amount | None},
}
"""What an aggregation of each kind counts."""


def read_search(body: Mapping[str, Any]) -> Callable[[Any], Answer]:
    """Return the reader of the answer to a search, which must have what `body` asks for."""
    source = body.get("_source", False)
    return _shape_search(
        (*body.get("docvalue_fields", ()), *body.get("script_fields", ())),
        tuple(source) if isinstance(source, list) else (),
        keeps_source=isinstance(source, dict),
        has_order="sort" in body,
        has_marks="highlight" in body,
        has_total=body.get("track_total_hits", False),
        aggregations=json.dumps(body.get("aggs")),
    ).read


@lru_cache(maxsize=100)
def _shape_search(
    columns: tuple[str, ...],
    source: tuple[str, ...],
    *,
    keeps_source: bool,
    has_order: bool,
    has_marks: bool,
    has_total: bool,
    aggregations: str,
) -> Shape[Answer]:
    hit: dict[str, Any] = {"sort": Some[list[Any], Field(min_length=1)]} if has_order else {}
    if "document_id" in columns:
        hit["fields"] = make_object(**{name: _COLUMNS[name] for name in columns})
        hit |= {} if has_order else {"_score": _Score}
    elif columns:  # a probe, which may find what another program has written
        hit |= {"_index": str, "fields": NotRequired[make_object(source_hash=tuple[str])]}
    if source or keeps_source:
        names = _SOURCE if keeps_source else source
        parts = {name: _SOURCE[name] for name in names}
        hit |= {"_id": _PassageId, "_source": make_object(keeps_others=keeps_source, **parts)}
    elif not columns:  # matches have other ids, and are in no order
        hit["_id"] = _PassageId if has_order else str
    if has_marks:
        hit["highlight"] = NotRequired[make_object(text=tuple[str])]
    hits: dict[str, Any] = {"hits": Items[make_object(**hit)]}
    answer: dict[str, Any] = {}
    if has_total:
        hits["total"] = make_object(value=NonNegativeInt)
        answer["_shards"] = make_object(total=PositiveInt)
    if named := json.loads(aggregations):
        parts = {name: _shape_aggregation(**part) for name, part in named.items()}
        answer["aggregations"] = make_object(**parts)
    return Shape(make_object(hits=make_object(**hits), **answer))


def _shape_aggregation(aggs: Mapping[str, Any] | None = None, **kinds: Any) -> Any:
    ((kind, options),) = kinds.items()
    if kind != "terms":
        return make_object(**_NUMBERS[kind])
    is_metadata = options["field"].startswith("metadata.")
    bucket = make_object(
        key=str | bool | int | FiniteFloat if is_metadata else str,
        key_as_string=NotRequired[str],
        doc_count=NonNegativeInt,
        **{name: _shape_aggregation(**part) for name, part in (aggs or {}).items()},
    )
    return make_object(buckets=Items[bucket])


RESPONSES = Shape[Answer](make_object(responses=list[dict[str, Any]]))
"""The answers to several searches in one request."""
FAILURE = Shape[Answer](make_object(status=int))
"""The answer to one of several searches that failed."""
