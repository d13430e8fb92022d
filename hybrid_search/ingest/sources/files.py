"""Read files: JSONL, CSV and TSV (gzipped or not), Parquet, standard input, the bundled sample.

One line at a time, whatever the size of the file.
"""

from __future__ import annotations

import errno
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
from hybrid_search.text.name_lists import list_names

SAMPLE = Path(__file__).parents[2] / "sample" / "calls.jsonl"
STDIN = "-"
MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line cannot be a document, and is not read into memory: a text has at most 10 MB, and
JSON needs at most six bytes for one of them.
"""

PARQUET = ".parquet"


def check(sources: Sequence[str], rejects: Path | None = None, columns: Columns = SAME) -> None:
    """Check that all sources can be read, before anything is written.

    MissingExtraError is raised if a source needs a package that is not installed.

    Raises:
        UsageError: If a source does not exist, is a folder or is the file `rejects`, or if
            `columns` are given and no source is a table.
    """
    for source in sources:
        if source != STDIN and (Path(source).is_dir() or not Path(source).exists()):
            kind = (
                "is a folder: name its files"
                if Path(source).is_dir()
                else "does not exist: check the name"
            )
            raise UsageError(f"source {source} {kind}")
        if source != STDIN and rejects and rejects.exists() and rejects.samefile(source):
            raise UsageError(
                f"source {source} is the file that refused documents are written to: "
                "rename it, or name another with --rejects"
            )
    kinds = {_kind(source) for source in sources}
    if columns.of and not kinds & {PARQUET, *DELIMITERS}:
        raise UsageError(
            f"--columns is for CSV, TSV and Parquet, but the sources are {list_names(sources)}: "
            "leave it out"
        )
    if PARQUET in kinds:
        _import_parquet_rows()


def read(sources: Sequence[str], columns: Columns = SAME) -> Iterator[SourceLine]:
    """Yield all lines of all sources; `columns` say which columns of a table give which keys.

    A source that breaks off ends with a line whose fault says so; then the next source is read.
    """
    for source in sources:
        number = 0
        try:
            with closing(_rows(source, columns)) as source_rows:
                for number, data, fault in source_rows:
                    yield SourceLine(source, number, data, fault)
        except (OSError, EOFError, zlib.error) as error:
            is_told_by_system = isinstance(error, OSError) and error.errno
            yield SourceLine(
                source,
                number + 1,
                b"",
                f"the source cannot be read on after line {number}: "
                f"{error if is_told_by_system else 'it is damaged, or cut off'}",
                str(error),
            )


def size(sources: Sequence[str]) -> int | None:
    """Return the bytes of all sources, None if standard input is among them."""
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
    """Return standard input, opened anew for a thread that may wait for it when the process ends.

    A thread that waits in Python's own reader holds a lock that the interpreter needs at its end.

    Raises:
        OSError: If it is closed.
    """
    if sys.stdin is None:  # closed, as by <&- in a shell
        raise OSError(errno.EBADF, "standard input is closed")
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):  # in a test, standard input is not a file
        return nullcontext(sys.stdin.buffer)


def _kind(source: str) -> str:
    """Return how the name of `source` ends, without ``.gz``."""
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
    """Yield the rows of a file; of a line that is too long, only the beginning and a fault."""
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
