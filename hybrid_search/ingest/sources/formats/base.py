"""The definition of a file format: how to recognise it and read its documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO


@dataclass(frozen=True, slots=True)
class Format:
    """A file format of conversations.

    Attributes:
        name: The value of ``--format``.
        recognise: Function that returns whether a file has this format, given its first 64 KiB
            (decompressed) and its name.
        read: Function that yields the documents of an open file, as dicts with ``id`` and ``turns``
            or ``text``. The second argument is the default id. It raises InputError for a file in
            another format.
    """

    name: str
    recognise: Callable[[bytes, str], bool]
    read: Callable[[BinaryIO, str], Iterator[dict[str, Any]]]
