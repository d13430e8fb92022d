"""The definition of a file format, and of one that consists of JSON objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO

from pydantic_core import from_json

from hybrid_search.errors import InputError
from hybrid_search.ingest.sources import json_texts
from hybrid_search.ingest.sources.records import parse_record

MAX_LEVELS = 5
"""Levels of nested objects whose keys are used to recognise a file."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""Half of a character, which `from_json` refuses if the other half is missing."""

Documents = Iterable[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format of conversations."""

    name: str
    """The value of ``--format``."""
    recognise: Callable[[bytes, str], bool]
    """Tells if a file has this format, by its first 64 KiB (decompressed) and its name."""
    read: Callable[[BinaryIO, str], Iterator[dict[str, Any]]]
    """Yields the documents of an open file, which have ``id`` and ``turns`` or ``text``.

    The second argument is the default id. InputError is raised for a file in another format.
    """


def json_format(
    name: str, build: Callable[[Any, str], Documents], *keys: set[str], without: str = ""
) -> Format:
    """Return the format of JSON files that have all key paths of one of the sets `keys`.

    `build` yields the documents of an object, and may raise any error. Its second argument is the
    default id: the id of the file, with a number from the second object on.
    """

    def recognise(head: bytes, _: str) -> bool:
        paths = find_paths(head)
        return without not in paths and any(alternative <= paths for alternative in keys)

    def read(file: BinaryIO, id: str) -> Iterator[dict[str, Any]]:
        for row in json_texts.read_values(file):
            record = parse_record(row)
            if record.fault:
                raise InputError(record.fault.removesuffix(json_texts.GOES_ON))
            yield from build(record.fields, id if row.number == 1 else f"{id}-{row.number}")

    return Format(name, recognise, read)


@lru_cache(maxsize=4)
def find_paths(head: bytes) -> frozenset[str]:
    """Return the key paths in the first object of a JSON file; lists add nothing to a path.

    The file may be cut off. If it does not start with JSON, there are no paths.
    """
    text = _SURROGATE.sub(r"\\n", head.decode("utf-8-sig", "replace"))  # only keys matter
    try:
        value = from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return frozenset()
    return frozenset(_iterate_paths(value[:1] if isinstance(value, list) else value))


def _iterate_paths(value: Any, prefix: str = "", levels: int = MAX_LEVELS) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _iterate_paths(item, prefix, levels)
    elif isinstance(value, dict) and levels:
        for key, item in value.items():
            yield f"{prefix}{key}"
            yield from _iterate_paths(item, f"{prefix}{key}.", levels - 1)
