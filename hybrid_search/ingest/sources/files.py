"""Where documents come from: JSONL, CSV and TSV files, gzipped or not, Parquet files, standard
input, or the bundled sample.

One line at a time, whatever the size.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import BinaryIO, cast

from hybrid_search.errors import UsageError
from hybrid_search.ingest.sources.tables import DELIMITERS, SAME, Columns, Row, rows
from hybrid_search.ingest.types import SourceLine

SAMPLE = Path(__file__).parents[2] / "sample" / "calls.jsonl"
STDIN = "-"
MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line cannot be a document (a text has at most 10 MB, JSON at most six bytes for one of
it) and is not read into memory.
"""


PARQUET = ".parquet"


def check(sources: Sequence[str], rejects: Path | None = None, columns: Columns = SAME) -> None:
    """Raise UsageError for a source that is not there, or that `rejects` would overwrite, before
    anything is begun; MissingExtraError for one that cannot be read here.
    """
    for source in sources:
        if source != STDIN and (Path(source).is_dir() or not Path(source).exists()):
            kind = "is a folder: name its files" if Path(source).is_dir() else "does not exist"
            raise UsageError(f"source {source} {kind}")
        if source != STDIN and rejects and rejects.exists() and rejects.samefile(source):
            raise UsageError(
                f"source {source} is the file that refused documents are written to: rename it, or name another with --rejects"
            )
    kinds = {_kind(source) for source in sources}
    if columns.of and not kinds & {PARQUET, *DELIMITERS}:
        raise UsageError(
            f"--columns is for CSV, TSV and Parquet, and the sources are {', '.join(sources)}: leave it out"
        )
    if PARQUET in kinds:
        _import_parquet_rows()


def read(sources: Sequence[str], columns: Columns = SAME) -> Iterator[SourceLine]:
    """All lines of all sources, rows of tables by `columns`.

    A source that breaks off ends with a line that says so; the next one is read.
    """
    for source in sources:
        number = 0
        try:
            with closing(_rows(source, columns)) as source_rows:
                for number, data, fault in source_rows:
                    yield SourceLine(source, number, data, fault)
        except (OSError, EOFError, zlib.error) as error:
            yield SourceLine(
                source,
                number + 1,
                b"",
                f"the source cannot be read on after line {number}: {error}",
            )


def size(sources: Sequence[str]) -> int | None:
    """Bytes of all sources, or None where standard input is among them."""
    return None if STDIN in sources else sum(Path(source).stat().st_size for source in sources)


def _open(source: str) -> AbstractContextManager[BinaryIO]:
    if source == STDIN:
        return _stdin()
    return (
        cast("BinaryIO", gzip.open(source, "rb"))
        if source.lower().endswith(".gz")
        else Path(source).open("rb")
    )


def _stdin() -> AbstractContextManager[BinaryIO]:
    """A reader of its own: a thread that waits in Python's would hold a lock that the interpreter
    wants when it ends.
    """
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):  # standard input of a test is no file
        return nullcontext(sys.stdin.buffer)


def _kind(source: str) -> str:
    """How its name ends, without ``.gz``."""
    return Path(source.lower().removesuffix(".gz")).suffix


def _import_parquet_rows() -> Callable[[str, Columns], Iterator[Row]]:
    from hybrid_search.ingest.sources import parquet

    return parquet.rows


def _rows(source: str, columns: Columns) -> Generator[Row, None, None]:
    kind = _kind(source)
    if kind == PARQUET:
        yield from _import_parquet_rows()(source, columns)
        return
    with _open(source) as file:
        yield from (
            rows(_lines(file), columns, DELIMITERS[kind]) if kind in DELIMITERS else _lines(file)
        )


def _lines(file: BinaryIO) -> Iterator[Row]:
    """Number, bytes, and what is wrong with a line that is too long: the rest of it is passed over."""
    number = 0
    while data := file.readline(MAX_LINE_BYTES):
        number += 1
        is_complete = len(data) < MAX_LINE_BYTES or data.endswith(b"\n")
        remainder = b"" if is_complete else data
        while remainder and not remainder.endswith(b"\n"):
            remainder = file.readline(MAX_LINE_BYTES)
        yield (
            (number, data, None)
            if is_complete
            else (number, data[:1000], f"the line is over {MAX_LINE_BYTES} bytes long")
        )
