"""The shape of the answer to a bulk request."""

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


_BULK_ANSWER = Shape[dict[str, Any]](_BulkAnswer)


def read_items(answer: Any) -> list[dict[str, Any]]:
    """Return the item of each action from the answer to a bulk request."""
    return [item for part in _BULK_ANSWER.read(answer)["items"] for item in part.values()]
