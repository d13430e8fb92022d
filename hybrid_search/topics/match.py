"""`Match`: one mention of a topic. This module is imported with the package, so it stays light."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid_search.errors import UsageError


@dataclass(frozen=True, slots=True)
class Match:
    """A mention of a topic: ``document.text[start:end] == text``, in code points.

    Attributes:
        topic: The topic's name.
        phrase: The phrase of the topic that the words are nearest to.
        id: The document's id.
        turn: The number of the turn that holds it, from 0.
        speaker: The speaker of the turn, if known.
        start: Where the words begin in the document's text.
        end: Where they end.
        text: The words.
        cosine: Their cosine with the phrase, -1..1.
        probability: How likely they express the topic, 0..1.
        start_ms: When the words begin, in milliseconds, if the turn has times.
        end_ms: When they end.
        metadata: All keys of the document but id, text and turns.
        model: The fingerprint of the model that the cosine comes from.
        times: The origin of the times, as in `Span`.
    """

    topic: str
    phrase: str
    id: str
    turn: int
    speaker: str | None
    start: int
    end: int
    text: str
    cosine: float
    probability: float
    start_ms: int | None
    end_ms: int | None
    metadata: Mapping[str, Any] = field(hash=False)
    model: str
    times: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the match as a JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


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
