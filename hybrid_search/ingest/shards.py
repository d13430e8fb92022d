"""Shards: split the documents of a source among processes, by the hash of their ids.

Each process reads all lines and keeps its own. An id always belongs to the same shard, so a
repeated document replaces its earlier version, and no two processes write it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from hybrid_search.errors import UsageError

if TYPE_CHECKING:
    from hybrid_search.ingest.types import SourceLine


@dataclass(frozen=True, slots=True)
class Shard:
    """Shard `number` of `of`, numbered from 0 like the completion index of a Kubernetes job."""

    number: int = 0
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a shard of the form ``0/3``; raise UsageError for anything else."""
        number, slash, of = text.partition("/")
        are_numbers = all(part.isascii() and part.isdecimal() for part in (number, of))
        if not (slash and are_numbers and int(number) < int(of)):
            raise UsageError(
                f"shard {text!r} is not of the form I/N, with I under N: "
                "0/3, 1/3 and 2/3 are all the shards of three"
            )
        return cls(int(number), int(of))

    def owns(self, line: SourceLine) -> bool:
        """Return whether this shard takes `line`.

        A line without an id is assigned by its number, so that exactly one shard refuses it.
        """
        if self.of == 1:
            return True
        # imported late: every client imports shards, and most never read a document
        from hybrid_search.ingest.document_parser import read_id

        document_id = None if line.fault else read_id(line.data)
        return (line.number if document_id is None else _hash(document_id)) % self.of == self.number

    def owns_id(self, document_id: str) -> bool:
        """Return whether this shard takes the document with this id."""
        return self.of == 1 or _hash(document_id) % self.of == self.number

    def add_suffix(self, name: str) -> str:
        """Return `name` with the number of this shard, if there are several in one folder."""
        return name if self.of == 1 else f"{name}.{self.number}-of-{self.of}"


ALL_DOCUMENTS = Shard()
"""The one shard that takes all documents."""


def _hash(id: str) -> int:
    return int.from_bytes(hashlib.sha256(id.encode("utf-8", "surrogatepass")).digest()[:8])
