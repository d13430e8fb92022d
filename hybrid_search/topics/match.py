"""`Match`: a mention of a topic, or a document in which a rule holds.

This module is imported with the package, so it stays light.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hybrid_search.errors import UsageError
from hybrid_search.file_errors import explain_failure


@dataclass(frozen=True, slots=True)
class Evidence:
    """A mention by which a rule holds; its attributes are those of `Match`.

    Attributes:
        topic: The topic's name.
        turn: The number of the turn, from 0.
        speaker: The speaker of the turn, if known.
        start: Where the words begin in the document's text.
        end: Where they end.
        text: The words.
        probability: How likely they express the topic, 0..1.
        start_ms: When the words begin, in milliseconds, if the turn has times.
        end_ms: When they end.
        amount: The number that the rule asked for, as it stands in the turn; None if for none.
    """

    topic: str
    turn: int
    speaker: str | None
    start: int
    end: int
    text: str
    probability: float
    start_ms: int | None
    end_ms: int | None
    amount: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the evidence as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Match:
    """A mention of a topic, or a document in which a rule holds.

    ``document.text[start:end] == text``, in code points. A match of a rule has the words of its
    first evidence.

    Attributes:
        topic: The name of the topic or rule.
        phrase: The phrase of the topic that the words are nearest to.
        id: The document's id.
        turn: The number of the turn that holds it, from 0.
        speaker: The speaker of the turn, if known.
        start: Where the words begin in the document's text.
        end: Where they end.
        text: The words.
        cosine: Their cosine with the phrase, -1..1.
        probability: How likely they express the topic, or the evidence fulfils the rule, 0..1.
        start_ms: When the words begin, in milliseconds, if the turn has times.
        end_ms: When they end.
        metadata: All keys of the document but id, text and turns.
        model: The fingerprint of the model that the cosine comes from.
        times: The origin of the times, as in `Span`.
        evidence: The mentions by which a rule holds, in their order; empty for a topic.
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
    evidence: tuple[Evidence, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the match as a JSON object."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {**values, "evidence": [item.to_dict() for item in self.evidence]}


def to_row(match: Match) -> dict[str, Any]:
    """Return a match as a row of a table, where metadata and evidence are JSON."""
    values = match.to_dict()
    nested = ("metadata", "evidence")
    return values | {name: json.dumps(values[name], ensure_ascii=False) for name in nested}


def read_matches(path: Path) -> Iterator[Match]:
    """Yield the matches of a file of JSON lines.

    UsageError is raised if it cannot be read, or a line is not a match.
    """
    failure = f"{path} cannot be read"
    with explain_failure(failure, "name a file of matches"), path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _parse(line, f"{path}:{number}")


def _parse(line: bytes, place: str) -> Match:
    try:
        values = json.loads(line)
        evidence = tuple(Evidence(**item) for item in values["evidence"])
        match = Match(**{**{name: values[name] for name in Match.__slots__}, "evidence": evidence})
        texts = (match.topic, match.id, match.text)
        places = (match.turn, match.start, match.end)
        has_types = all(type(text) is str for text in texts)
        if not has_types or not all(type(place) is int for place in places):
            raise TypeError("topic, id and text are strings; turn, start and end are integers")
        if not 0 <= match.start < match.end:
            raise ValueError("start is smaller than end")
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{place} is not a match: it needs {', '.join(Match.__slots__)} (a file that ends in "
            ".jsonl has matches, as mine writes them)"
        ) from error
    return match
