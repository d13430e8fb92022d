"""What the readers of JSON share: recognising a file by its keys, and reading its records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, BinaryIO, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from hybrid_search.errors import InputError, put_plainly

MAX_LEVELS = 5
"""Levels of objects whose keys are looked at to recognise a file."""

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(:)?|[{}\[\]]')


class Record(BaseModel):
    """An object of a file: its fields are those that its reader needs, and others are left out."""

    model_config = ConfigDict(
        frozen=True,
        coerce_numbers_to_str=True,
        defer_build=True,  # those of formats that are not read cost nothing
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
    """Return the keys in the first object of a JSON file, as in ``results.items``.

    Lists add nothing to a path.

    Args:
        head: The beginning of the file, which may end anywhere.

    Returns:
        The paths; none if the file does not begin as JSON.
    """
    text = head.decode("utf-8-sig", "replace").lstrip()
    if not text.startswith(("{", "[")):
        return frozenset()
    paths: set[str] = set()
    parents: list[str] = []  # of each open object, the path of the key that it stands under
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
    """Yield the records of a file: one object, a list of objects, or one object a line.

    Each comes with the id for a record that states none: that of the file, with a number if it is
    not the first.
    """
    for number, value in enumerate(_iterate_values(file), 1):
        yield id if number == 1 else f"{id}-{number}", kind.parse(value)


def _iterate_values(file: BinaryIO) -> Iterator[Any]:
    first_line = file.readline()
    while first_line and not first_line.strip():
        first_line = file.readline()
    try:
        values = _parse(first_line)
    except InputError:  # one value over many lines
        yield from _parse(first_line + file.read())
        return
    yield from values
    for line in file:
        if line.strip():
            yield from _parse(line)


def _parse(text: bytes) -> list[Any]:
    """Return the objects of a JSON text. Raises InputError."""
    try:
        value = json.loads(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8", f"byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", f"at character {error.pos}") from error
    except RecursionError as error:
        raise InputError("not JSON: nested too deeply") from error
    return value if isinstance(value, list) else [value]
