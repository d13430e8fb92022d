"""The formats in which matches are written: JSON lines, CSV and Parquet.

CSV and Parquet have a column for each attribute of a `Match`; metadata is JSON in them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from hybrid_search.errors import UsageError
from hybrid_search.observability.escapes import defuse_cell
from hybrid_search.topics.match import Match, flatten

COLUMNS = tuple(Match.__slots__)


def to_jsonl(matches: Sequence[Match]) -> bytes:
    """Return one JSON object a line."""
    lines = (json.dumps(match.to_dict(), ensure_ascii=False) + "\n" for match in matches)
    return "".join(lines).encode("utf-8", "surrogatepass")


def to_csv(matches: Sequence[Match]) -> bytes:
    """Return one row a line, without the header; formulas are defused."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows(map(defuse_cell, row.values()) for row in flatten(matches))
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
        from hybrid_search.topics import match_parquet  # noqa: F401 (raises MissingExtraError)
