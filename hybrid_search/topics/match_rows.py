"""Matches as rows of a table, and matches read back from JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hybrid_search.errors import UsageError
from hybrid_search.topics.match import Match


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
