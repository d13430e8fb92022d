"""A file of codes: the word codes and the short codes of the passages of one commit, or of many.

Its name tells the range of passages that it is for, `FIRST-LAST.codes`. Token codes have a checksum
each, which is compared when they are read; the arrays have theirs, compared when it is opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.crc import crc32
from hybrid_search.backends.embedded import short_codes
from hybrid_search.backends.embedded.passage_documents import Numbers
from hybrid_search.backends.embedded.sealed_file import (
    DamagedFileError,
    SealedFile,
    SealedFileWriter,
)
from hybrid_search.backends.embedded.short_codes import LAYERS, WORDS, LayerCodes, ShortCodes
from hybrid_search.text import word_codes
from hybrid_search.text.types import WordCodes

UNFINISHED = "unfinished.tmp"
"""Name of a file that is being written."""

NAME = re.compile(r"(\d{10})-(\d{10})\.codes")


@dataclass(slots=True, eq=False)
class CodesBuilder:
    """A file of codes that is being written, passage by passage, under the name `unfinished`."""

    unfinished: Path
    identity: str
    passages: list[int] = field(default_factory=list)
    documents: list[int] = field(default_factory=list)
    ids: dict[int, str] = field(default_factory=dict)
    ends: list[int] = field(default_factory=list)
    checksums: list[int] = field(default_factory=list)
    parts: list[ShortCodes] = field(default_factory=list)
    _file: SealedFileWriter | None = None

    def __len__(self) -> int:
        """Return the number of passages."""
        return len(self.passages)

    def add(
        self, passage: int, document: int, document_id: str, data: bytes, codes: ShortCodes | None
    ) -> None:
        """Append a passage whose number is higher than all before it; `data` are word codes."""
        if self._file is None:
            self._file = SealedFileWriter(self.unfinished)
        self._file.write(data)
        self.passages.append(passage)
        self.documents.append(document)
        self.ids[document] = document_id
        self.ends.append(self._file.position)
        self.checksums.append(crc32(data))
        if codes is not None:
            self.parts.append(codes)

    def cut(self, passages: int) -> None:
        """Take back all but the first so many passages."""
        if self._file is None or passages == len(self):
            return
        left_out = set(self.passages[passages:])
        self._file.cut(self.ends[passages - 1] if passages else 0)
        self.parts = [part for part in self.parts if int(part.passages[0]) not in left_out]
        for column in (self.passages, self.documents, self.ends, self.checksums):
            del column[passages:]
        kept = set(self.documents)
        self.ids = {document: name for document, name in self.ids.items() if document in kept}

    def seal(self, folder: Path, first: int, last: int) -> Path:
        """Write the arrays, and give the file the name of its range in `folder`."""
        assert self._file is not None  # noqa: S101 (only a file with passages is sealed)
        with self._file as file:
            file.add("passages", np.array(self.passages, np.int64))
            file.add("documents", np.array(self.documents, np.int64))
            file.add("ends", np.array(self.ends, np.int64))
            file.add("checksums", np.array(self.checksums, np.uint32))
            names = json.dumps(self.ids, ensure_ascii=False).encode()
            file.add("ids", np.frombuffer(names, np.uint8))
            codes = short_codes.join([short_codes.empty(), *self.parts])
            file.add("short passages", codes.passages)
            for number, layer in enumerate(codes.layers):
                file.add(f"counts {number}", layer.counts)
                file.add(f"codes {number}", layer.codes)
            file.add("centroids", codes.centroids)
            path = folder / name_of(first, last)
            file.seal(path, {"identity": self.identity})
        return path

    def discard(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.__exit__(None, None, None)


def name_of(first: int, last: int) -> str:
    """Return the name of the file of codes of a range of passages."""
    return f"{first:010d}-{last:010d}.codes"


def range_of(path: Path) -> tuple[int, int]:
    """Return the first and the last passage of the range that a name tells."""
    match = NAME.fullmatch(path.name)
    assert match is not None  # noqa: S101 (only such files are listed)
    return int(match[1]), int(match[2])


class CodesFile:
    """A file of codes, open for reading by several threads.

    Attributes:
        path: Where it is.
        first: The first passage of its range.
        last: The last passage of its range.
        passages: Those that it has, ascending, int64 ``[passages]``.
        documents: The document of each, int64 ``[passages]``.

    Raises:
        DamagedFileError: If it is not one that was written for the index with this identity.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self.path = path
        self.first, self.last = range_of(path)
        self._sealed = SealedFile(path)
        if self._sealed.facts.get("identity") != identity:
            raise DamagedFileError(f"{path} is of another index")
        self.passages: Numbers = self._sealed.read("passages")
        self.documents: Numbers = self._sealed.read("documents")
        self._ends: Numbers = self._sealed.read("ends")
        self._checksums: NDArray[np.uint32] = self._sealed.read("checksums")
        self._sound: set[int] = set()

    @classmethod
    def open_or_none(cls, path: Path, identity: str) -> Self | None:
        """Return a file of codes, None if it is damaged."""
        try:
            return cls(path, identity)
        except DamagedFileError:
            return None

    def __len__(self) -> int:
        """Return the number of passages."""
        return len(self.passages)

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self._sealed.data)

    @cached_property
    def ids(self) -> dict[int, str]:
        """The id of each document by its number; empty where they cannot be read."""
        try:
            names = json.loads(self._sealed.read("ids").tobytes())
        except (DamagedFileError, ValueError):
            return {}
        return {int(document): name for document, name in names.items()}

    def read(self, passage: int) -> bytes | None:
        """Return the word codes of a passage, b"" if they changed, None if it has none of it.

        They are compared with their checksum once in the life of a process: they never change.
        """
        row = int(np.searchsorted(self.passages, passage))
        if row == len(self) or self.passages[row] != passage:
            return None
        data: bytes = self._sealed.data[self._ends[row - 1] if row else 0 : self._ends[row]]
        if passage not in self._sound:
            if crc32(data) != self._checksums[row]:
                return b""
            self._sound.add(passage)
        return data

    def read_short_codes(self) -> ShortCodes:
        """Return the short codes of its passages, mapped into memory.

        DamagedFileError is raised if they are not those that were written.
        """
        layers = tuple(
            LayerCodes(self._sealed.read(f"counts {number}"), self._sealed.read(f"codes {number}"))
            for number in range(len(LAYERS))
        )
        centroids = self._sealed.read("centroids")
        return ShortCodes(self._sealed.read("short passages"), layers, centroids)

    def shorten_again(self, dimension: int) -> ShortCodes:
        """Return the short codes of its passages, made from those word codes that are sound."""
        parts = [
            short_codes.shorten(passage, tokens)
            for passage, tokens in self._iterate_tokens()
            if word_codes.is_sound(tokens, dimension) and len(tokens.norms)
        ]
        return short_codes.join([short_codes.empty(), *parts])

    def _iterate_tokens(self) -> Iterator[tuple[int, WordCodes]]:
        for passage in self.passages.tolist():
            yield passage, word_codes.read(self.read(passage) or b"")


def merge(
    files: Sequence[CodesFile], alive: Numbers, folder: Path, identity: str, dimension: int
) -> Path | None:
    """Copy the passages that are alive of neighbouring files into one in `folder`.

    Passages whose word codes changed are copied as they are, so that they stay damaged.

    Returns:
        The new file, of the range of all; None if no passage is left, and nothing was written.
    """
    builder = CodesBuilder(folder / UNFINISHED, identity)
    try:
        for file in files:
            _copy(file, alive, builder, dimension)
        if not len(builder):
            return None
        return builder.seal(folder, files[0].first, files[-1].last)
    finally:
        builder.discard()


def _copy(file: CodesFile, alive: Numbers, builder: CodesBuilder, dimension: int) -> None:
    try:
        codes = file.read_short_codes()
    except DamagedFileError:
        codes = file.shorten_again(dimension)
    kept = set(np.intersect1d(file.passages, alive).tolist())
    parts = {int(part.passages[0]): part for part in _split(codes)}
    for passage, document in zip(file.passages.tolist(), file.documents.tolist(), strict=True):
        if passage in kept:
            data = file.read(passage) or b""
            name = file.ids.get(document, "")
            builder.add(passage, document, name, data, parts.get(passage))


def _split(codes: ShortCodes) -> Iterator[ShortCodes]:
    """Yield the short codes of each passage, in order."""
    ends = [np.cumsum(layer.counts, dtype=np.int64) for layer in codes.layers]
    for row in range(len(codes.passages)):
        layers = []
        for layer, own_ends in zip(codes.layers, ends, strict=True):
            count, end = layer.counts[row : row + 1], int(own_ends[row])
            layers.append(LayerCodes(count, layer.codes[end - int(count[0]) : end]))
        end = int(ends[WORDS][row])
        centroids = codes.centroids[end - len(layers[WORDS].codes) : end]
        yield ShortCodes(codes.passages[row : row + 1], tuple(layers), centroids)
