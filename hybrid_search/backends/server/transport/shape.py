"""The shape of an answer, checked where it arrives: behind a URL there may be another service."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Any, Generic, NotRequired, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, StrictInt, TypeAdapter, ValidationError
from typing_extensions import TypedDict  # pydantic reads that of the library from 3.12 on

from hybrid_search.errors import put_plainly

T = TypeVar("T")

Items: Any = list
Named: Any = dict
Some: Any = Annotated
"""These take types that are made by `make_object`, which a type checker does not see."""

MAX_STEPS = 8
"""The longest place that a message names, in steps: an answer may be nested thousands deep."""


class ShapeError(ValueError):
    """An answer has another shape; the message names the first place that differs."""


class Shape(Generic[T]):
    """The shape of the answers to one kind of request: a type, of `make_object`, lists, dicts."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._kind)

    def read(self, answer: Any) -> T:
        """Return `answer` as its type; raise ShapeError if it has another shape."""
        try:
            return self._adapter.validate_python(answer)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(map(str, first["loc"][:MAX_STEPS])) or "the answer"
            # the cause would quote documents
            raise ShapeError(f"{place} {put_plainly(first['msg'])}") from None


def make_object(*, keeps_others: bool = False, **parts: Any) -> Any:
    """Return the type of an object with these parts; others are left out, unless it keeps them."""
    create: Any = TypedDict
    kind = create("Object", parts)
    if keeps_others:
        kind.__pydantic_config__ = ConfigDict(extra="allow")
    return kind


ANYTHING: Shape[Any] = Shape(Any)
CONTAINER: Shape[Any] = Shape(dict[str, Any] | list[Any])
"""A JSON object or list."""
OBJECT: Shape[dict[str, Any]] = Shape(dict[str, Any])
"""Any JSON object."""


def _parse_version(number: str) -> re.Match[str]:
    match = re.match(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", number)
    if match is None:
        raise ValueError("must have three numbers")
    return match


_VERSION = make_object(
    number=Some[str, AfterValidator(_parse_version)], distribution=NotRequired[Any]
)
HELLO = Shape[dict[str, Any]](make_object(version=_VERSION))
"""What ``GET /`` answers, its version taken apart."""

_Item = make_object(keeps_others=True, status=NotRequired[StrictInt], _id=NotRequired[str | None])
_BULK = Shape[dict[str, Any]](
    make_object(items=Items[Some[Named[str, _Item], Field(min_length=1, max_length=1)]])
)


def read_items(answer: Any) -> list[dict[str, Any]]:
    """Return the item of each action from the answer to a bulk request."""
    return [item for part in _BULK.read(answer)["items"] for item in part.values()]
