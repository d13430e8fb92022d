"""Documents from files, folders, globs and standard input, by detected file kind.

One line, row or object is read at a time, whatever the size of the file.
"""

from __future__ import annotations

import codecs
import glob
import os
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from hybrid_search.errors import InputError, UsageError
from hybrid_search.ingest.rejects import REJECTED
from hybrid_search.ingest.sources import csv_tables, json_texts, recognition
from hybrid_search.ingest.sources.encodings import (
    UTF8,
    TextEncoding,
    as_utf8,
    decode_head,
    recognise_encoding,
)
from hybrid_search.ingest.sources.formats import FORMATS
from hybrid_search.ingest.sources.formats.base import Format
from hybrid_search.ingest.sources.read_options import AS_IS, SAME, ReadOptions
from hybrid_search.ingest.sources.recognition import CSV, JSON, JSON_LINES, PARQUET
from hybrid_search.ingest.sources.records import (
    Record,
    Row,
    build_row,
    has_speaker_lines,
    read_record,
)
from hybrid_search.ingest.sources.streams import STDIN, can_open_twice, copy_to_file, open_source
from hybrid_search.ingest.sources.tables import Table, read_table
from hybrid_search.ingest.sources.turn_rows import group_calls
from hybrid_search.ingest.types import SourceLine
from hybrid_search.observability import logs

SAMPLE = Path(__file__).parents[2] / "sample" / "calls.jsonl"
UNFINISHED = (".tmp", ".part")
"""File name suffixes of files that are still being written."""
LEFT_ALONE = (*UNFINISHED, REJECTED)
"""File name suffixes that are skipped in folders."""


FIRST_ROWS = 2
"""Highest number of a row checked for speaker names; a table's first row may be number 2."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read, or standard input.

    Attributes:
        path: Where it is, as named in messages.
        id: The id of its document, if the document has none: the path within the named folder,
            without suffix.
    """

    path: str
    id: str

    @property
    def name(self) -> str:
        """Return the name of the file without ``.gz``."""
        name = Path(self.path).name
        return name[:-3] if name.lower().endswith(".gz") else name


def find(sources: Sequence[str]) -> list[SourceFile]:
    """Return the files that `sources` name: files, folders (recursively) and globs.

    In folders, hidden files, unfinished files and rejects files are skipped. Raises UsageError if a
    file does not exist, or a folder has no files.
    """
    return [file for source in sources for file in _find_source(source)]


def _find_source(source: str) -> list[SourceFile]:
    path = Path(source)
    if source == STDIN:
        return [SourceFile(STDIN, "stdin")]
    if path.is_dir():
        files = _find_in_folder(path)
        if not files:
            raise UsageError(f"source {source} is a folder without files")
        return files
    if path.exists():
        return [SourceFile(source, _make_id(path, path.parent))]
    if not glob.has_magic(source):
        raise UsageError(f"source {source} does not exist: check the name")
    folder = _fixed_folder(path)
    matches = sorted(folder.glob(str(path.relative_to(folder))))
    files = [file for match in matches for file in _find_match(match, folder)]
    if not files:
        raise UsageError(f"no file matches {source}: check the pattern")
    return list({file.path: file for file in files}.values())


def _find_match(match: Path, folder: Path) -> list[SourceFile]:
    if _is_hidden(match.relative_to(folder)):
        return []
    if match.is_dir():
        return _find_in_folder(match, folder)
    return [SourceFile(str(match), _make_id(match, folder))]


def _fixed_folder(pattern: Path) -> Path:
    """Return the part of a glob before its first wildcard."""
    parts = pattern.parts
    fixed = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:fixed])


def _find_in_folder(folder: Path, named_folder: Path | None = None) -> list[SourceFile]:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    visible = [path for path in paths if not _is_hidden(path.relative_to(folder))]
    return [
        SourceFile(str(path), _make_id(path, named_folder or folder))
        for path in visible
        if not path.name.endswith(LEFT_ALONE)
    ]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _make_id(path: Path, folder: Path) -> str:
    relative = path.relative_to(folder)
    if relative.suffix.lower() == ".gz":
        relative = relative.with_suffix("")
    return relative.with_suffix("").as_posix()


def check(
    sources: Sequence[str], rejects: Path | None = None, options: ReadOptions = AS_IS
) -> None:
    """Check that all sources can be read, before anything is written.

    Raises MissingExtraError if a source needs a package that is not installed.

    Raises:
        UsageError: If a source does not exist, or is the file `rejects`, or if the format or the
            encoding is unknown.
    """
    recognition.check_format(options.format)
    _named_encoding(options)
    for file in find(sources):
        is_file = file.path != STDIN and rejects and rejects.exists()
        if is_file and rejects and rejects.samefile(file.path):
            raise UsageError(
                f"source {file.path} is the file that refused documents are written to: "
                "rename it, or name another with --rejects"
            )
        if PARQUET in (options.format, recognition.ENDINGS.get(_ending(file))):
            _import_arrow_tables()


def _ending(file: SourceFile) -> str:
    return Path(file.name).suffix.lower()


def read(sources: Sequence[str], options: ReadOptions = AS_IS) -> Iterator[SourceLine]:
    """Yield all documents of all sources; anything else becomes a line with a fault.

    A source that breaks off or cannot be read ends with a line whose fault says so; then the next
    source is read.
    """
    may_split = not options.split_speakers
    for file in find_present(sources):
        number, is_empty = 0, True
        try:
            with closing(_read_file(file, options)) as rows:
                for number, data, fault in rows:
                    is_empty = is_empty and not (fault or data.strip())
                    if may_split and number <= FIRST_ROWS and has_speaker_lines(data):
                        may_split = False
                        logs.log_or_print(
                            f"{file.path}: lines of the text begin with names of speakers, and "
                            "--split-speakers makes turns of them"
                        )
                    yield SourceLine(file.path, number, data, fault)
            if is_empty:
                logs.log_or_print(f"{file.path} has no document in it")
        except InputError as error:
            yield SourceLine(file.path, number + 1, b"", str(error), error.detail)
        except (OSError, EOFError, zlib.error) as error:
            is_told_by_system = isinstance(error, OSError) and error.errno
            yield SourceLine(
                file.path,
                number + 1,
                b"",
                f"the source cannot be read on after line {number}: "
                f"{error if is_told_by_system else 'it is damaged, or cut off'}",
                str(error),
            )


def find_present(sources: Sequence[str]) -> Iterator[SourceFile]:
    """Yield the files of `sources`; a missing file is kept, so reading it reports the error."""
    for source in sources:
        try:
            yield from _find_source(source)
        except UsageError:
            yield SourceFile(source, source)


def size(sources: Sequence[str]) -> int | None:
    """Return the total size of all sources in bytes, None if standard input is among them."""
    if STDIN in sources:
        return None
    return sum(Path(file.path).stat().st_size for file in find(sources))


def _read_file(file: SourceFile, options: ReadOptions) -> Generator[Row, None, None]:
    with open_source(file.path, recognition.is_enough) as (head, stream):
        encoding = _named_encoding(options) or recognise_encoding(head)
        text_head = decode_head(head, encoding)
        kind = recognition.recognise(text_head, file.name, options)
        if kind == PARQUET:
            yield from read_table(_open_parquet(file, stream), options)
            return
        if kind in (JSON, JSON_LINES) and not encoding.is_for_json:
            encoding = UTF8
        if encoding.is_guessed:
            logs.log_or_print(
                f"{file.path} is read as {encoding}, by its characters: "
                "--encoding names another if that is wrong"
            )
        if kind == CSV:
            yield from _read_csv(file, as_utf8(stream, encoding), text_head, encoding, options)
        else:
            yield from _read_text(kind, file, as_utf8(stream, encoding), options)


def _read_text(
    kind: str, file: SourceFile, stream: BinaryIO, options: ReadOptions
) -> Iterator[Row]:
    known_format = next((known for known in FORMATS if known.name == kind), None)
    if known_format:
        documents = _read_format(known_format, stream, file.id)
        options = replace(options, columns=SAME)  # a recognised format has document keys
        return (build_row(Record(number, item), options) for number, item in documents)
    rows = (json_texts.read_values if kind == JSON else json_texts.read_lines)(stream)
    if options.keep_objects:
        return rows
    rows = (row for row in rows if row[2] or row[1].strip())
    if options.rows == "turn":
        return group_calls((read_record(row) for row in rows), options)
    return (_build_json_row(row, options) for row in rows)


def _build_json_row(row: Row, options: ReadOptions) -> Row:
    """Return the document of a row; a row that is not an object is kept, to be refused later."""
    record = read_record(row)
    return row if record.fault else build_row(record, options)


def _read_format(format: Format, stream: BinaryIO, id: str) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        yield from enumerate(format.read(stream, id), 1)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"not a whole file of the format {format.name}", f"{type(error).__name__}: {error}"
        ) from error


def _read_csv(
    file: SourceFile,
    opened: BinaryIO,
    head: bytes,
    encoding: TextEncoding,
    options: ReadOptions,
) -> Iterator[Row]:
    with ExitStack() as stack:
        if can_open_twice(file.path):
            open_table = partial(_open_text, file.path, encoding)
        else:
            copy = stack.enter_context(copy_to_file(opened))
            open_table = partial(_rewind, copy)
        table = csv_tables.CsvTable(open_table, csv_tables.find_delimiter(head))
        yield from read_table(table, options)


@contextmanager
def _open_text(path: str, encoding: TextEncoding) -> Iterator[BinaryIO]:
    with open_source(path, bool) as (_, stream):
        yield as_utf8(stream, encoding)


@contextmanager
def _rewind(file: BinaryIO) -> Iterator[BinaryIO]:
    """Yield `file` rewound to its start; the reader may close it."""
    file.seek(0)
    with os.fdopen(os.dup(file.fileno()), "rb") as copy:
        yield copy


def _import_arrow_tables() -> Any:
    from hybrid_search.ingest.sources import arrow_tables

    return arrow_tables


def _open_parquet(file: SourceFile, stream: BinaryIO) -> Table:
    is_plain = can_open_twice(file.path) and not file.path.lower().endswith(".gz")
    table: Table = _import_arrow_tables().ParquetTable(
        file.path if is_plain else copy_to_file(stream)
    )
    return table


def _named_encoding(options: ReadOptions) -> TextEncoding | None:
    if options.encoding is None:
        return None
    try:
        return TextEncoding(codecs.lookup(options.encoding).name)
    except LookupError as error:
        raise UsageError(
            f"--encoding {options.encoding!r} is unknown: give one as Python calls it, as in "
            "windows-1252, utf-8 or utf-16"
        ) from error
