"""What a format of files is: how it is recognised, and how its documents are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files that hold conversations.

    Attributes:
        name: The value of ``--format``.
        recognise: Says whether a file is of this format, from its first 64 KiB (decompressed) and
            its name.
        read: Yields the documents of an open file, as dicts with ``id`` and ``turns`` or ``text``.
            The second argument is the id for a file that states none. A file that is not of the
            format is an InputError.
    """

    name: str
    recognise: Callable[[bytes, str], bool]
    read: Callable[[BinaryIO, str], Iterator[dict[str, Any]]]
