"""A file of codes: the word codes of the passages of some commits, and lists of their words.

Its name tells the range of passages that it is for, `FIRST-LAST.codes`. The word codes of a passage
have a checksum, compared when they are read as a whole, not by `word_search`; the arrays and lists
have theirs, compared when the file is opened (`sealed_file`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.crc import crc32
from hybrid_search.backends.embedded.passage_documents import Numbers
from hybrid_search.backends.embedded.sealed_file import (
    DamagedFileError,
    SealedFile,
    SealedFileWriter,
)
from hybrid_search.backends.embedded.word_lists import Index, WordLists, list_words
from hybrid_search.text.joined_words import HEADER, find_rows

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
    keys: list[NDArray[np.uint32]] = field(default_factory=list)
    places: list[Index] = field(default_factory=list)
    _file: SealedFileWriter | None = None

    def __len__(self) -> int:
        return len(self.passages)

    def add(self, passage: int, document: int, document_id: str, data: bytes) -> None:
        """Append a passage whose number is higher than all before it; `data` are word codes."""
        if self._file is None:
            self._file = SealedFileWriter(self.unfinished)
        rows = find_rows(data)
        keys, numbers = list_words(rows)
        self.keys.append(keys)
        self.places.append(self._file.position + HEADER.size + rows.itemsize * numbers)
        self._file.write(data)
        self.passages.append(passage)
        self.documents.append(document)
        self.ids[document] = document_id
        self.ends.append(self._file.position)
        self.checksums.append(crc32(data))

    def cut(self, passages: int) -> None:
        """Take back all but the first so many passages."""
        if self._file is None or passages == len(self):
            return
        self._file.cut(self.ends[passages - 1] if passages else 0)
        columns = (self.passages, self.documents, self.ends, self.checksums, self.keys, self.places)
        for column in columns:
            del column[passages:]
        kept = set(self.documents)
        self.ids = {document: name for document, name in self.ids.items() if document in kept}

    def seal(self, folder: Path, first: int, last: int) -> Path:
        """Return the path of the file in `folder`: its arrays are written, and its range names it.

        If that fails, the file is removed.
        """
        try:
            return self._seal(folder, first, last)
        except BaseException:
            self.discard()
            raise

    def _seal(self, folder: Path, first: int, last: int) -> Path:
        self._file = file = self._file or SealedFileWriter(self.unfinished)
        file.add("passages", np.array(self.passages, np.int64))
        file.add("documents", np.array(self.documents, np.int64))
        file.add("ends", np.array(self.ends, np.int64))
        file.add("checksums", np.array(self.checksums, np.uint32))
        names = json.dumps(self.ids, ensure_ascii=False).encode()
        file.add("ids", np.frombuffer(names, np.uint8))
        lists = WordLists.from_words(self.keys, self.places)
        file.add("lists", lists.keys)
        file.add("list counts", lists.counts.astype(np.uint32))
        file.add("list words", lists.places)
        path = folder / f"{first:010d}-{last:010d}.codes"
        file.seal(path, {"identity": self.identity})
        return path

    def discard(self) -> None:
        """Remove the file, unless it was sealed."""
        if self._file is not None:
            self._file.discard()


def range_of(path: Path) -> tuple[int, int]:
    """Return the first and the last passage of the range that a name tells."""
    match = NAME.fullmatch(path.name)
    assert match is not None  # noqa: S101 (only such files are listed)
    return int(match[1]), int(match[2])


class CodesFile:
    """A file of codes, open for reading by several threads.

    Its range is `first` to `last`. `passages` are those that it has, ascending, `documents` are
    their documents, and `starts` and `ends` where their word codes are, in bytes, all int64.
    DamagedFileError is raised if it is not one that was written for the index of this identity.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self.path = path
        self.first, self.last = range_of(path)
        self._sealed = SealedFile(path)
        if self._sealed.facts.get("identity") != identity:
            raise DamagedFileError(f"{path} is of another index")
        self.passages: Numbers = self._sealed.read("passages")
        self.documents: Numbers = self._sealed.read("documents")
        self.ends: Numbers = self._sealed.read("ends")
        self.starts: Numbers = np.append(0, self.ends)[:-1]
        self._checksums: NDArray[np.uint32] = self._sealed.read("checksums")
        keys, counts, places = map(self._sealed.read, ("lists", "list counts", "list words"))
        self.lists = WordLists(keys, counts.astype(np.int64), places)
        self._sound: set[int] = set()

    @classmethod
    def open_or_none(cls, path: Path, identity: str) -> Self | None:
        """Return a file of codes, None if it is damaged."""
        try:
            return cls(path, identity)
        except DamagedFileError:
            return None

    def __len__(self) -> int:
        return len(self.passages)

    @property
    def data(self) -> Any:
        """All its bytes, mapped into memory."""
        return self._sealed.data

    @cached_property
    def ids(self) -> dict[int, str]:
        """The id of each document by its number."""
        names = json.loads(self._sealed.read("ids").tobytes())
        return {int(document): name for document, name in names.items()}

    def read(self, passage: int) -> bytes | None:
        """Return the word codes of a passage, b"" if they changed, None if it has none of it.

        They are compared with their checksum once in the life of a process: they never change.
        """
        row = int(np.searchsorted(self.passages, passage))
        if row == len(self) or self.passages[row] != passage:
            return None
        data: bytes = self.data[self.starts[row] : self.ends[row]]
        if passage not in self._sound:
            if crc32(data) != self._checksums[row]:
                return b""
            self._sound.add(passage)
        return data


def merge(files: Sequence[CodesFile], alive: Numbers, folder: Path, identity: str) -> Path | None:
    """Return a new file of the passages that are alive of neighbouring files; None without any."""
    builder = CodesBuilder(folder / UNFINISHED, identity)
    try:
        for file in files:
            is_alive = np.isin(file.passages, alive)
            passages, documents = file.passages[is_alive], file.documents[is_alive]
            numbers = zip(passages.tolist(), documents.tolist(), strict=True)
            for passage, document in numbers:
                data = file.read(passage) or b""  # so that what changed stays damaged
                builder.add(passage, document, file.ids[document], data)
        if not len(builder):
            return None
        return builder.seal(folder, files[0].first, files[-1].last)
    finally:
        builder.discard()
