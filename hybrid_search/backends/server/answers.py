"""What servers answer, as far as it is read: that to a search by what its body asks for."""

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

from hybrid_search.backends.server.transport.shape import Items, Named, Shape, Some, make_object
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
ACKNOWLEDGED = Shape[Answer](make_object(acknowledged=bool))
"""An index or alias was made, changed or removed."""
META = Shape[Answer](make_object(hybrid_search=dict[str, Any], options=NotRequired[dict[str, Any]]))
"""What the mapping of an index of this project has in its ``_meta``."""
ATTACHED = Shape[Answer](
    make_object(index=str, columns=dict[str, str], is_nested=bool, template=NotRequired[str | None])
)
"""What it has there if it is the sidecar of another index."""
SPEC = Shape[IndexSpec](IndexSpec)
SETTINGS = Shape[Answer](Some[Named[str, _Settings], Field(min_length=1)])
_Bytes = make_object(store=make_object(size_in_bytes=NonNegativeInt))
STORED = Shape[Answer](make_object(_all=make_object(primaries=_Bytes)))
"""How many bytes an index takes, without replicas."""

_Left = make_object(
    docs=make_object(deleted=NonNegativeInt), translog=make_object(operations=NonNegativeInt)
)
REMAINS = Shape[Answer](make_object(_all=make_object(total=_Left)))
"""How many deleted documents and operations all copies of an index still have."""
_Leases = make_object(leases=Items[make_object(retaining_seq_no=int)])
_Copy = make_object(seq_no=make_object(max_seq_no=int), retention_leases=_Leases)
COPIES = Shape[Answer](
    make_object(indices=Named[str, make_object(shards=Named[str, Items[_Copy]])])
)
"""How far each copy of each shard is written, and from where on its operations are kept."""
TASK = Shape[Answer](make_object(task=str))
"""A task that was begun."""
PROGRESS = Shape[Answer](make_object(completed=bool))
"""Whether a task is done."""


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
    "end": tuple[_Offset],
    "source_version": NotRequired[tuple[str]],
    "text_hash": NotRequired[tuple[str]],
    "tokens": NotRequired[list[str]],
    "turn_speakers": NotRequired[list[_TurnSpeaker]],
}
_SOURCE: Mapping[str, Any] = {
    "start": _Offset,
    "text": str,
    "layout": Annotated[str, AfterValidator(_check_layout)],
    "metadata": NotRequired[dict[str, Any]],
    "source_hash": str,
}
OTHER_HIT = make_object(
    _index=str,
    _id=str,
    _score=NotRequired[_Score | None],
    _seq_no=NonNegativeInt,
    _primary_term=NonNegativeInt,
    _source=NotRequired[dict[str, Any]],
)
"""A document of an index of another program, with its version."""
_Value: Any = str | bool | int | FiniteFloat
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
    columns = tuple(body.get("docvalue_fields", ()))
    parts = frozenset(body.keys() & {"sort", "highlight", "seq_no_primary_term"})
    counts = body.get("track_total_hits", False)
    shape = _shape_search(columns, json.dumps(source), json.dumps(body.get("aggs")), parts, counts)
    return shape.read


@lru_cache(maxsize=100)
def _shape_search(
    columns: tuple[str, ...], source: str, aggregations: str, parts: frozenset[str], counts: bool
) -> Shape[Answer]:
    if "seq_no_primary_term" in parts:  # an index of another program, whose documents have any form
        return Shape(make_object(hits=make_object(hits=Items[OTHER_HIT])))
    hit = _shape_columns(columns, has_order="sort" in parts) | _shape_source(json.loads(source))
    if "sort" in parts:
        hit["sort"] = Some[list[Any], Field(min_length=1)]
    if "highlight" in parts:
        hit["highlight"] = NotRequired[Some[dict[str, tuple[str]], Field(min_length=1)]]
    hits: dict[str, Any] = {"hits": Items[make_object(**hit)]}
    answer: dict[str, Any] = {}
    if counts:
        hits["total"] = make_object(value=NonNegativeInt)
        answer["_shards"] = make_object(total=PositiveInt)
    if aggs := json.loads(aggregations):
        answer["aggregations"] = _shape_aggregations(aggs)
    return Shape(make_object(hits=make_object(**hits), **answer))


def _shape_columns(columns: tuple[str, ...], *, has_order: bool) -> dict[str, Any]:
    """Return the parts of a hit that columns are in, or its id if none is requested."""
    if not columns:  # matches have other ids than passages, and are in no order
        return {"_id": _PassageId if has_order else str}
    if "document_id" not in columns:  # a probe, which may find what another program has written
        return {"_index": str, "fields": NotRequired[make_object(source_hash=tuple[str])]}
    fields = make_object(**{name: _COLUMNS[name] for name in columns})
    return {"fields": fields, **({} if has_order else {"_score": _Score})}


def _shape_source(source: Any) -> dict[str, Any]:
    """Return the parts of a hit that its document is in."""
    if not source:
        return {}
    is_whole = isinstance(source, dict)  # says what is left out
    parts = {name: _SOURCE[name] for name in (_SOURCE if is_whole else source)}
    return {"_id": _PassageId, "_source": make_object(keeps_others=is_whole, **parts)}


def _shape_aggregations(aggs: Mapping[str, Any]) -> Any:
    return make_object(**{name: _shape_aggregation(part) for name, part in aggs.items()})


def _shape_aggregation(part: Mapping[str, Any]) -> Any:
    (kind,) = part.keys() - {"aggs"}
    if kind != "terms":
        return make_object(**_NUMBERS[kind])
    has_types = part["terms"]["field"].startswith("metadata.")
    bucket = make_object(
        key=_Value if has_types else str,
        key_as_string=NotRequired[str],
        doc_count=NonNegativeInt,
        **{name: _shape_aggregation(inner) for name, inner in part["aggs"].items()},
    )
    return make_object(buckets=Items[bucket])


RESPONSES = Shape[Answer](make_object(responses=list[dict[str, Any]]))
"""The answers to several searches in one request."""
FAILURE = Shape[Answer](make_object(status=int))
"""The answer to one of several searches that failed."""
