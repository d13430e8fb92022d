"""The shape of an answer: its parts and their types, checked where it arrives.

Behind a URL there may be a proxy, another service or a broken server, whose answers are valid JSON
too. Code that reads a checked answer needs no further checks.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from hybrid_search.errors import put_plainly

T = TypeVar("T")


class ShapeError(ValueError):
    """An answer has another shape; the message names the first place that differs."""


class Shape(Generic[T]):
    """The shape of the answers to one kind of request.

    Args:
        kind: A type whose parts are types too: a `TypedDict`, a list, a dict. Keys that a
            `TypedDict` does not name are left out of what is read.
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._kind)

    def read(self, answer: Any) -> T:
        """Return `answer` as its type.

        Raises:
            ShapeError: If it has another shape.
        """
        try:
            return self._adapter.validate_python(answer)
        except ValidationError as error:
            raise ShapeError(_describe(error)) from None  # the cause would quote documents


def _describe(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"][:MAX_STEPS])) or "the answer"
    return f"{place} {put_plainly(first['msg'])}"


MAX_STEPS = 8
"""The longest place that a message names, in steps: an answer may be nested thousands deep."""

ANYTHING: Shape[Any] = Shape(Any)
CONTAINER: Shape[Any] = Shape(dict[str, Any] | list[Any])
"""A JSON object or list."""
OBJECT: Shape[dict[str, Any]] = Shape(dict[str, Any])
"""Any JSON object."""
