"""Lines that start with the name of a speaker, such as "Agent: Hello."."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hybrid_search.ingest.sources.formats.turns import make_turn
from hybrid_search.ingest.sources.times import to_milliseconds

MAX_NAMES = 20
"""More different names than this are taken for keys of a form or log, not for speakers."""

_LINE = re.compile(
    r"\s*(?:[\[(]?(?P<time>(?:\d{1,2}:)?\d{1,2}:\d\d)(?:[.,]\d+)?[\])]?\s+(?:-\s+)?)?"
    r"(?P<name>[^\W\d_][\w.'’/()#&-]*(?: [\w.'’/()#&-]+){0,3}):(?:\s+|$)(?P<text>.*)"
)


@dataclass(frozen=True, slots=True)
class NamedLine:
    """A line that may start with a name, such as "Agent: Hello."."""

    text: str
    name: str | None = None
    words: str = ""
    time_ms: int | None = None

    @classmethod
    def parse(cls, line: str) -> NamedLine:
        """Return the parts of a line; the name is None if it has none."""
        match = _LINE.fullmatch(line)
        if match is None:
            return cls(line)
        time_ms = to_milliseconds(match["time"], "time") if match["time"] else None
        return cls(line, match["name"], match["text"], time_ms)


def find_speakers(lines: Sequence[NamedLine]) -> frozenset[str]:
    """Return the speaker names of a text; empty if it is not a conversation.

    A conversation starts with a name, and at least one name is repeated. A speaker is named twice
    or in the first two named lines, so "Order: 17" inside a turn is none.
    """
    lines = [line for line in lines if line.text.strip()]
    names = [line.name for line in lines if line.name]
    repeated = {name for name, count in Counter(names).items() if count > 1}
    is_short = len(lines) == len(names) == 2
    begins_with_name = bool(lines) and lines[0].name is not None
    if not begins_with_name or not (repeated or is_short) or len(repeated) > MAX_NAMES:
        return frozenset()
    return frozenset(repeated | set(names[:2]))


def split_speakers(text: str) -> list[dict[str, Any]] | None:
    """Return the turns of a text whose lines start with names of speakers, else None.

    A line without a name continues the previous turn. A time before the name, as in ``[00:01:20]
    Agent: ...``, is the time of the turn.
    """
    lines = [NamedLine.parse(line) for line in text.splitlines()]
    speakers = find_speakers(lines)
    if not speakers:
        return None
    turns: list[tuple[NamedLine, list[str]]] = []
    for line in lines:
        if line.name in speakers:
            turns.append((line, [line.words]))
        elif turns:
            turns[-1][1].append(line.text)
    made = (make_turn("\n".join(texts), line.name, (line.time_ms, None)) for line, texts in turns)
    return [turn for turn in made if turn.get("text")] or None
