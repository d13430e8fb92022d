"""Shared code of JSON formats: recognise a file by its keys, and read its records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, BinaryIO, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from hybrid_search.errors import InputError, put_plainly

MAX_LEVELS = 5
"""Levels of nested objects whose keys are used to recognise a file."""

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(:)?|[{}\[\]]')


class Record(BaseModel):
    """An object of a file, with the fields that its reader needs; others are ignored."""

    model_config = ConfigDict(
        frozen=True,
        coerce_numbers_to_str=True,
        defer_build=True,  # unused formats cost nothing
    )

    @classmethod
    def parse(cls, value: Any) -> Self:
        """Return the record in `value`.

        Raises:
            InputError: If a field is missing, or of another type.
        """
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(step) for step in first["loc"])
            keys = ".".join(step for step in first["loc"] if isinstance(step, str))
            raise InputError(f"{keys} {put_plainly(first['msg'])}", f"at {place}") from error


AnyRecord = TypeVar("AnyRecord", bound=Record)


@lru_cache(maxsize=4)
def find_paths(head: bytes) -> frozenset[str]:
    """Return the key paths in the first object of a JSON file, such as ``results.items``.

    Lists add nothing to a path.

    Args:
        head: The start of the file, possibly truncated.

    Returns:
        The paths; empty if the file does not start as JSON.
    """
    text = head.decode("utf-8-sig", "replace").lstrip()
    if not text.startswith(("{", "[")):
        return frozenset()
    paths: set[str] = set()
    parents: list[str] = []  # the key path of each open object
    path = ""
    for token in _TOKEN.finditer(text):
        bracket, is_key = token[0], token[2]
        if is_key and parents:
            path = f"{parents[-1]}{token[1]}"
            if len(parents) <= MAX_LEVELS:
                paths.add(path)
        elif bracket in "{[":
            parents.append(f"{path}." if path else "")
        elif bracket in "}]" and parents:
            path = parents.pop().removesuffix(".")
            if bracket == "}" and not any(parents) and not path:
                break  # the first object ends here
    return frozenset(paths)


def read_records(file: BinaryIO, kind: type[AnyRecord], id: str) -> Iterator[tuple[str, AnyRecord]]:
    """Yield the records of a file: one object, a list of objects, or one object per line.

    Each comes with a default id: the id of the file, with a number from the second record on.
    """
    for number, value in enumerate(_iterate_values(file), 1):
        yield id if number == 1 else f"{id}-{number}", kind.parse(value)


def _iterate_values(file: BinaryIO) -> Iterator[Any]:
    first_line = file.readline()
    while first_line and not first_line.strip():
        first_line = file.readline()
    try:
        values = _parse(first_line)
    except InputError:  # one value spanning several lines
        yield from _parse(first_line + file.read())
        return
    yield from values
    for line in file:
        if line.strip():
            yield from _parse(line)


def _parse(text: bytes) -> list[Any]:
    """Return the objects of a JSON text; raise InputError if it is invalid."""
    try:
        value = json.loads(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8", f"byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", f"at character {error.pos}") from error
    except RecursionError as error:
        raise InputError("not JSON: nested too deeply") from error
    return value if isinstance(value, list) else [value]
