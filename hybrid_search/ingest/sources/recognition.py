"""Detection of the kind of a source by its start and its name."""

from __future__ import annotations

import json
from pathlib import Path

from hybrid_search.errors import InputError, UsageError
from hybrid_search.ingest.sources import csv_tables
from hybrid_search.ingest.sources.formats import FORMATS
from hybrid_search.ingest.sources.read_options import ReadOptions

JSON_LINES, JSON, CSV, PARQUET = "jsonl", "json", "csv", "parquet"
BUILT_IN = (JSON_LINES, JSON, CSV, PARQUET)

PARQUET_MARK = b"PAR1"
ZIP_MARK = b"PK\x03\x04"
ENDINGS = {
    ".parquet": PARQUET,
    ".csv": CSV,
    ".tsv": CSV,
    ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES,
    ".json": JSON_LINES,
}
"""Kinds by file name, for content that shows nothing, such as an empty file."""


def list_formats() -> list[str]:
    """Return the values of ``--format``."""
    return [*BUILT_IN, *(known.name for known in FORMATS)]


def check_format(name: str | None) -> None:
    """Raise UsageError if `name` is given and not one of `list_formats`."""
    if name and name not in list_formats():
        raise UsageError(f"--format is {name!r}: it is one of {', '.join(list_formats())}")


def is_enough(head: bytes) -> bool:
    """Return whether `head` alone shows the kind of a source: a whole line of JSON."""
    line, newline, _ = head.partition(b"\n")
    return bool(newline) and line.lstrip().startswith(b"{") and _is_json(line)


def recognise(head: bytes, name: str, options: ReadOptions) -> str:
    """Return the kind of a source: one of `list_formats`.

    `head` are its first bytes, in UTF-8 if it is text, and `name` is its file name without ``.gz``.
    If the options name columns that the source has, it is JSON or a table, and not a format with
    the same keys.

    Raises:
        InputError: If no reader supports it.
    """
    if options.format:
        return options.format
    ending = Path(name).suffix.lower()
    if head.startswith(PARQUET_MARK) or ENDINGS.get(ending) == PARQUET:
        return PARQUET
    own_keys = _recognise_json(head)
    is_named_table = ENDINGS.get(ending) == CSV and bool(head)
    if own_keys is None and (is_named_table or csv_tables.looks_like_table(head)):
        own_keys = CSV
    if own_keys and options.columns:
        return own_keys
    by_content = "" if own_keys else name  # what JSON or a table is called tells less than it
    known_formats = (known.name for known in FORMATS if known.recognise(head, by_content))
    if kind := next(known_formats, None) or own_keys or ENDINGS.get(ending):
        return kind
    if not head.strip():
        return JSON_LINES  # without a line
    if head.startswith(ZIP_MARK):
        raise InputError("a ZIP file or an Excel workbook: unpack it, or save its sheet as CSV")
    kind_of_file = "a binary file" if b"\0" in head else "a text"
    known_names = ", ".join(list_formats())
    raise InputError(
        f"{kind_of_file} of no format that is known: --format names one of {known_names}"
    )


def _recognise_json(head: bytes) -> str | None:
    lines = [line for line in head.splitlines() if line.strip()]
    if not lines or not lines[0].lstrip().startswith((b"{", b"[")):
        return None
    if lines[0].lstrip().startswith(b"["):
        # a list, rather than a text such as "[agent] Hello"
        inner = b"".join(lines[:2]).lstrip()[1:].lstrip()
        return JSON if inner[:1] in (b"{", b"[", b"]", b'"', b"") else None
    if b"\n" not in head.strip():
        return JSON if b"\r" in head.strip() else JSON_LINES
    is_line = _is_json(lines[0]) or lines[1].startswith(b"{")
    return JSON_LINES if is_line else JSON


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    return True
