"""Documents from files, folders, globs and standard input, by detected file kind.

One line, row or object is read at a time, whatever the size of the file.
"""

from __future__ import annotations

import codecs
import glob
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from hybrid_search.errors import InputError, UsageError
from hybrid_search.ingest.rejects import REJECTED
from hybrid_search.ingest.sources import csv_tables, json_texts, recognition
from hybrid_search.ingest.sources.formats import FORMATS
from hybrid_search.ingest.sources.formats.base import Format
from hybrid_search.ingest.sources.read_options import AS_IS, ReadOptions
from hybrid_search.ingest.sources.recognition import CSV, JSON, JSON_LINES, PARQUET
from hybrid_search.ingest.sources.records import (
    CONTENT,
    Record,
    build_record,
    dump,
    parse_record,
)
from hybrid_search.ingest.sources.streams import (
    STDIN,
    UTF8,
    TextEncoding,
    as_file,
    as_utf8,
    decode_head,
    open_source,
    recognise_encoding,
)
from hybrid_search.ingest.sources.tables import read_table
from hybrid_search.ingest.sources.turn_rows import group_calls
from hybrid_search.ingest.types import SourceLine
from hybrid_search.observability import logs

SAMPLE = Path(__file__).parents[2] / "sample" / "calls.jsonl"
UNFINISHED = (".tmp", ".part")
"""File name suffixes of files that are still being written."""
LEFT_ALONE = (*UNFINISHED, REJECTED)
"""File name suffixes that are skipped in folders."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read, or standard input."""

    path: str
    """Where it is, as named in messages."""
    id: str
    """The id of a document without one: the path in the named folder, without suffix."""

    @property
    def name(self) -> str:
        """Return the name of the file without ``.gz``."""
        name = Path(self.path).name
        return name[:-3] if name.lower().endswith(".gz") else name


def find(sources: Sequence[str]) -> list[SourceFile]:
    """Return the files that `sources` name: files, folders (recursively) and globs.

    In folders, hidden files, unfinished files and rejects files are skipped.

    Raises:
        UsageError: If a file does not exist, or a folder has no files.
    """
    files: list[SourceFile] = []
    for source in sources:
        found = _find_source(source)
        if not found and Path(source).is_dir():
            raise UsageError(f"source {source} is a folder without files")
        if not found and glob.has_magic(source):
            raise UsageError(f"source {source} matches no file: check the pattern")
        if not found:
            raise UsageError(f"source {source} does not exist: check the name")
        files += found
    return files


def _find_source(source: str) -> list[SourceFile]:
    path = Path(source)
    if source == STDIN:
        return [SourceFile(STDIN, "stdin")]
    if path.is_dir():
        return _find_in_folder(path, path)
    if path.exists():
        return [_name_file(path, path.parent)]
    return _find_matches(path) if glob.has_magic(source) else []


def _find_matches(pattern: Path) -> list[SourceFile]:
    """Return the files that match a glob, and those in folders that match."""
    fixed = next(number for number, part in enumerate(pattern.parts) if glob.has_magic(part))
    folder = Path(*pattern.parts[:fixed])
    found: dict[SourceFile, None] = {}  # in order, each once
    for match in sorted(folder.glob(str(pattern.relative_to(folder)))):
        if not _is_hidden(match, folder):
            is_folder = match.is_dir()
            files = _find_in_folder(match, folder) if is_folder else [_name_file(match, folder)]
            found |= dict.fromkeys(files)
    return list(found)


def _find_in_folder(folder: Path, named_folder: Path) -> list[SourceFile]:
    return [
        _name_file(path, named_folder)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not _is_hidden(path, folder) and not path.name.endswith(LEFT_ALONE)
    ]


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _name_file(path: Path, folder: Path) -> SourceFile:
    plain_path = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return SourceFile(str(path), plain_path.relative_to(folder).with_suffix("").as_posix())


def check(
    sources: Sequence[str], rejects: Path | None = None, options: ReadOptions = AS_IS
) -> None:
    """Check that all sources can be read, before anything is written.

    Raises MissingExtraError if a source needs a package that is not installed.

    Raises:
        UsageError: If a source does not exist or is `rejects`, or format or encoding are unknown.
    """
    recognition.check_format(options.format)
    _named_encoding(options)
    for file in find(sources):
        is_file = file.path != STDIN
        if is_file and rejects and rejects.exists() and rejects.samefile(file.path):
            raise UsageError(
                f"source {file.path} is the file that refused documents are written to: "
                "rename it, or name another with --rejects"
            )
        if PARQUET in (options.format, recognition.ENDINGS.get(Path(file.name).suffix.lower())):
            import hybrid_search.ingest.sources.arrow_tables  # noqa: F401 (needs an extra)


def read(sources: Sequence[str], options: ReadOptions = AS_IS) -> Iterator[SourceLine]:
    """Yield all documents of all sources; anything else becomes a line with a fault.

    A source that breaks off or cannot be read ends with a line whose fault says so; then the next
    source is read.
    """
    # a file that is missing is read too, which reports the error
    files = (_find_source(source) or [SourceFile(source, source)] for source in sources)
    for file in chain.from_iterable(files):
        number, is_empty = 0, True
        try:
            with closing(_read_file(file, options)) as records:
                for record in records:
                    number = record.number
                    is_empty = is_empty and not (record.fault or record.raw.strip())
                    yield record.as_line(file.path)
            if is_empty:
                logs.log_or_print(f"{file.path} has no document in it")
        except InputError as error:
            yield SourceLine(file.path, number + 1, b"", str(error), error.detail)
        except (OSError, EOFError, zlib.error) as error:
            is_told_by_system = isinstance(error, OSError) and error.errno
            damage = error if is_told_by_system else "it is damaged, or cut off"
            fault = f"the source cannot be read on after line {number}: {damage}"
            yield SourceLine(file.path, number + 1, b"", fault, str(error))


def size(sources: Sequence[str]) -> int | None:
    """Return the total size of all sources in bytes, None if standard input is among them."""
    if STDIN in sources:
        return None
    return sum(Path(file.path).stat().st_size for file in find(sources))


def _read_file(file: SourceFile, options: ReadOptions) -> Generator[Record, None, None]:
    with open_source(file.path, recognition.is_enough) as (head, stream):
        encoding = _named_encoding(options) or recognise_encoding(head)
        text_head = decode_head(head, encoding)
        kind = recognition.recognise(text_head, file.name, options)
        if kind == PARQUET:
            from hybrid_search.ingest.sources import arrow_tables

            with as_file(stream) as file_of_table:
                yield from read_table(arrow_tables.open_parquet(file_of_table), options)
            return
        is_unicode = encoding.name.startswith("utf")
        if kind in (JSON, JSON_LINES) and encoding.is_guessed and not is_unicode:
            encoding = UTF8  # JSON is Unicode
        if encoding.is_guessed:
            logs.log_or_print(
                f"{file.path} is read as {encoding}, by its characters: "
                "--encoding names another if that is wrong"
            )
        with as_utf8(stream, encoding) as text:
            if kind == CSV:
                delimiter = csv_tables.find_delimiter(text_head)
                # a gzip file is unpacked twice, rather than into a folder that may be too small
                with nullcontext(text) if text.seekable() else as_file(text) as file_of_table:
                    table = csv_tables.open_table(file_of_table, delimiter)
                    yield from read_table(table, options)
            else:
                yield from _read_text(kind, file, text, options)


def _read_text(
    kind: str, file: SourceFile, stream: BinaryIO, options: ReadOptions
) -> Iterator[Record]:
    known_format = next((known for known in FORMATS if known.name == kind), None)
    if known_format:
        records = _read_format(known_format, stream, file.id)
        options = replace(options, columns={})  # a recognised format has document keys
        return (build_record(record, options) for record in records)
    records = (json_texts.read_values if kind == JSON else json_texts.read_lines)(stream)
    is_named = file.name.lower().endswith(".json") and "id" not in options.columns
    if options.keep_objects and not is_named:
        return records
    records = (record for record in records if record.fault or record.raw.strip())
    if options.rows == "turn":
        return group_calls(records, options)
    if is_named:
        records = _identify_only_document(records, file.id, options)
    return (build_record(record, options) for record in records)


def _identify_only_document(
    records: Iterator[Record], id: str, options: ReadOptions
) -> Iterator[Record]:
    """Yield the records of a file; a document without an id that is alone in it gets `id`."""
    first = next(records, None)
    if first is None:
        return
    try:
        second = next(records, None)
    except Exception:
        yield first  # it is whole, though the file breaks off behind it
        raise
    if second is not None:
        yield from (first, second)
        yield from records
        return
    fields = parse_record(first).fields or {}
    is_document = bool(options.columns) or any(key in fields for key in CONTENT)
    if fields and "id" not in fields and is_document:
        first = replace(first, raw=dump({"id": id, **fields}))
    yield first


def _read_format(format: Format, stream: BinaryIO, id: str) -> Iterator[Record]:
    try:
        for number, document in enumerate(format.read(stream, id), 1):
            yield Record(number, fields=document)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"not a whole file of the format {format.name}", f"{type(error).__name__}: {error}"
        ) from error


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
