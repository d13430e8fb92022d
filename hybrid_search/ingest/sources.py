"""Where documents come from: JSONL files, gzipped or not, standard input, or the bundled sample. One line at a time, whatever the size."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from hybrid_search.errors import UsageError

SAMPLE = Path(__file__).parent.parent / "sample" / "calls.jsonl"
STDIN = "-"
MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line cannot be a document (a text has at most 10 MB, JSON at most six bytes for one of it) and is not read into memory."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a source, numbered from 1. `fault` says why it could not be read, if so."""

    source: str
    number: int
    data: bytes
    fault: str | None = None


def check(sources: Sequence[str], rejects: Path | None = None) -> None:
    """Raise UsageError for a source that is not there, or that `rejects` would overwrite, before anything is begun."""
    for source in sources:
        if source != STDIN and (Path(source).is_dir() or not Path(source).exists()):
            kind = "is a folder: name its files" if Path(source).is_dir() else "does not exist"
            raise UsageError(f"source {source} {kind}")
        if source != STDIN and rejects and rejects.exists() and rejects.samefile(source):
            raise UsageError(f"source {source} is the file that refused documents are written to: rename it, or name another with --rejects")


def read(sources: Sequence[str]) -> Iterator[Line]:
    """All lines of all sources. A source that breaks off ends with a line that says so; the next one is read."""
    for source in sources:
        number = 0
        try:
            with _open(source) as file:
                for number, data, whole in _lines(file):
                    yield Line(source, number, data, None if whole else f"the line is over {MAX_LINE_BYTES} bytes long")
        except (OSError, EOFError, zlib.error) as error:
            yield Line(source, number + 1, b"", f"the source cannot be read on after line {number}: {error}")


def size(sources: Sequence[str]) -> int | None:
    """Bytes of all sources, or None where standard input is among them."""
    return None if STDIN in sources else sum(Path(source).stat().st_size for source in sources)


def _open(source: str) -> AbstractContextManager[BinaryIO]:
    if source == STDIN:
        return nullcontext(sys.stdin.buffer)
    return cast("BinaryIO", gzip.open(source, "rb")) if source.endswith(".gz") else Path(source).open("rb")


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes, bool]]:
    """Number, bytes, and whether that is all of the line. The rest of an over-long line is passed over."""
    number = 0
    while data := file.readline(MAX_LINE_BYTES):
        number += 1
        whole = len(data) < MAX_LINE_BYTES or data.endswith(b"\n")
        rest = b"" if whole else data
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE_BYTES)
        yield number, data if whole else data[:1000], whole
