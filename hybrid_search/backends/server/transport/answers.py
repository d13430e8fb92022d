"""The shapes of what a cluster says of itself, and of the outcomes of bulk requests."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, Field, StrictInt
from typing_extensions import TypedDict

from hybrid_search.backends.server.transport.shape import Shape


class _Item(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    status: NotRequired[StrictInt]
    _id: NotRequired[str | None]


class _BulkAnswer(TypedDict):
    items: list[Annotated[dict[str, _Item], Field(min_length=1, max_length=1)]]


class _Node(TypedDict):
    version: str


class _Nodes(TypedDict):
    nodes: Annotated[dict[str, _Node], Field(min_length=1)]


BULK_ANSWER = Shape[dict[str, Any]](_BulkAnswer)
NODES = Shape[dict[str, Any]](_Nodes)


class _Plugin(TypedDict):
    component: str


PLUGINS = Shape[list[dict[str, Any]]](list[_Plugin])
