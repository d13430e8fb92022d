"""The forms in which matches are written: JSON lines, CSV and Parquet.

CSV and Parquet have a column for each attribute of a `Match`; metadata is JSON in them.
JSON lines can be read again.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hybrid_search.errors import UsageError
from hybrid_search.observability.escapes import defuse_cell
from hybrid_search.phrases.match import Match

COLUMNS = tuple(Match.__slots__)

BATCH_ROWS = 10_000
"""Rows of a Parquet file that are in memory at once."""


def to_jsonl(matches: Sequence[Match]) -> bytes:
    """Return one JSON object a line."""
    lines = (json.dumps(match.to_dict(), ensure_ascii=False) + "\n" for match in matches)
    return "".join(lines).encode("utf-8", "surrogatepass")


def to_csv(matches: Sequence[Match]) -> bytes:
    """Return one row a line, without the header; formulas are defused."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    rows = (_flatten(match.to_dict()).values() for match in matches)
    writer.writerows(map(defuse_cell, row) for row in rows)
    return buffer.getvalue().encode()


def csv_header() -> bytes:
    """Return the first line of a CSV file."""
    return (",".join(COLUMNS) + "\n").encode()


def no_header() -> bytes:
    """Return nothing: JSON lines have no header."""
    return b""


ENCODERS: dict[str, tuple[Callable[[], bytes], Callable[[Sequence[Match]], bytes]]] = {
    "jsonl": (no_header, to_jsonl),
    "csv": (csv_header, to_csv),
    "parquet": (no_header, to_jsonl),
}
"""The header and the rows of each format, as they are written while a run lasts.

A Parquet file cannot be continued after a kill: it is made from JSON lines at the end.
"""


def check_format(name: str, out: Path | None) -> None:
    """Check that matches can be written in a format to a file, or to standard output.

    MissingExtraError is raised if it needs a library that is not installed.

    Raises:
        UsageError: If the format is unknown, or needs a file.
    """
    if name not in ENCODERS:
        raise UsageError(f"format is {name!r}: it must be {', '.join(ENCODERS)}")
    if name == "parquet":
        if out is None:
            raise UsageError("format is 'parquet', which needs a file: add --out FILE")
        from hybrid_search.phrases import match_parquet  # noqa: F401 (raises MissingExtraError)


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of JSON lines with the columns of a table."""
    with path.open("rb") as lines:
        for line in lines:
            yield _flatten(json.loads(line))


def flatten(matches: Iterable[Match]) -> Iterator[dict[str, Any]]:
    """Yield matches as rows of a table."""
    for match in matches:
        yield _flatten(match.to_dict())


def read_matches(path: Path) -> Iterator[Match]:
    """Yield the matches of a file of JSON lines.

    Raises:
        UsageError: If it cannot be read, or a line is not a match.
    """
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield _parse(line, path, number)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name a file of matches") from (
            error
        )


def _parse(line: bytes, path: Path, number: int) -> Match:
    try:
        values = json.loads(line)
        return Match(**{name: values[name] for name in Match.__slots__})
    except (ValueError, LookupError, TypeError) as error:
        raise UsageError(
            f"{path}:{number} is not a match: it needs {', '.join(Match.__slots__)}"
        ) from error


def _flatten(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "metadata": json.dumps(fields["metadata"], ensure_ascii=False)}
