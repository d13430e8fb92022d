"""Documents from files, folders, globs and standard input, by detected file kind.

One line, row or object is read at a time, whatever the size of the file.
"""

from __future__ import annotations

import codecs
import glob
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
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
from hybrid_search.ingest.sources.records import Record, build_record
from hybrid_search.ingest.sources.streams import (
    STDIN,
    UTF8,
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


SourceFile = tuple[str, str]
"""The path of a file, or `STDIN`, and the id of a document without one.

That is the path in the named folder, without suffix.
"""


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
        return [(STDIN, "stdin")]
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
    return str(path), plain_path.relative_to(folder).with_suffix("").as_posix()


def _find_plain_name(path: str) -> str:
    """Return the name of a file without ``.gz``."""
    name = Path(path).name
    return name[:-3] if name.lower().endswith(".gz") else name


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
    for path, _ in find(sources):
        if path != STDIN and rejects and rejects.exists() and rejects.samefile(path):
            raise UsageError(
                f"source {path} is the file that refused documents are written to: "
                "rename it, or name another with --rejects"
            )
        ending = Path(_find_plain_name(path)).suffix.lower()
        if PARQUET in (options.format, recognition.ENDINGS.get(ending)):
            import hybrid_search.ingest.sources.arrow_tables  # noqa: F401 (needs an extra)


def read(sources: Sequence[str], options: ReadOptions = AS_IS) -> Iterator[SourceLine]:
    """Yield all documents of all sources; anything else becomes a line with a fault.

    A source that breaks off or cannot be read ends with a line whose fault says so; then the next
    source is read.
    """
    # a file that is missing is read too, which reports the error
    files = (_find_source(source) or [(source, source)] for source in sources)
    for path, own_id in chain.from_iterable(files):
        number, is_empty = 0, True
        try:
            with closing(_read_file(path, own_id, options)) as records:
                for record in records:
                    number = record.number
                    is_empty = is_empty and not (record.fault or record.raw.strip())
                    yield record.as_line(path)
            if is_empty:
                logs.log_or_print(f"{path} has no document in it")
        except InputError as error:
            yield SourceLine(path, number + 1, b"", str(error), error.detail)
        except (OSError, EOFError, zlib.error) as error:
            is_told_by_system = isinstance(error, OSError) and error.errno
            damage = error if is_told_by_system else "it is damaged, or cut off"
            fault = f"the source cannot be read on after line {number}: {damage}"
            yield SourceLine(path, number + 1, b"", fault, str(error))


def size(sources: Sequence[str]) -> int | None:
    """Return the total size of all sources in bytes, None if standard input is among them."""
    if STDIN in sources:
        return None
    return sum(Path(path).stat().st_size for path, _ in find(sources))


def _read_file(path: str, id: str, options: ReadOptions) -> Generator[Record, None, None]:
    with open_source(path, recognition.is_enough) as (head, stream):
        named_encoding = _named_encoding(options)
        encoding, is_guess = (named_encoding, False) if named_encoding else recognise_encoding(head)
        text_head = decode_head(head, encoding)
        kind = recognition.recognise(text_head, _find_plain_name(path), options)
        if kind == PARQUET:
            from hybrid_search.ingest.sources import arrow_tables

            with as_file(stream) as file_of_table:
                yield from read_table(arrow_tables.open_parquet(file_of_table), options)
            return
        if kind in (JSON, JSON_LINES) and is_guess and not encoding.startswith("utf"):
            encoding, is_guess = UTF8, False  # JSON is Unicode
        if is_guess:
            shown = encoding.upper().replace("CP125", "Windows-125")
            logs.log_or_print(
                f"{path} is read as {shown}, by its characters: "
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
                yield from _read_text(kind, id, text, options)


def _read_text(kind: str, id: str, stream: BinaryIO, options: ReadOptions) -> Iterator[Record]:
    known_format = next((known for known in FORMATS if known.name == kind), None)
    if known_format:
        records = _read_format(known_format, stream, id)
        options = replace(options, columns={})  # a recognised format has document keys
        return (build_record(record, options) for record in records)
    records = (json_texts.read_values if kind == JSON else json_texts.read_lines)(stream)
    if options.keep_objects:
        return records
    records = (record for record in records if record.fault or record.raw.strip())
    if options.rows == "turn":
        return group_calls(records, options)
    return (build_record(record, options) for record in records)


def _read_format(format: Format, stream: BinaryIO, id: str) -> Iterator[Record]:
    try:
        for number, document in enumerate(format.read(stream, id), 1):
            yield Record(number, fields=document)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"not a whole file of the format {format.name}", f"{type(error).__name__}: {error}"
        ) from error


def _named_encoding(options: ReadOptions) -> str | None:
    if options.encoding is None:
        return None
    try:
        return codecs.lookup(options.encoding).name
    except LookupError as error:
        raise UsageError(
            f"--encoding {options.encoding!r} is unknown: give one as Python calls it, as in "
            "windows-1252, utf-8 or utf-16"
        ) from error
