"""Read what is put into groups: a file of matches, or one with a phrase a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from hybrid_search.discover.types import Occurrence
from hybrid_search.errors import UsageError, show_value
from hybrid_search.parameters import check_phrase
from hybrid_search.text.name_lists import list_names
from hybrid_search.topics.match import Match

PhraseSource: TypeAlias = "str | Path | Iterable[str] | Iterable[Match]"
"""A file, or phrases, or matches."""

OTHER_FORMATS = (".csv", ".parquet", ".json")
"""Endings of files that are neither JSON lines nor a phrase a line."""

_FIELDS = {"id": str, "turn": int, "start": int, "end": int, "text": str, "topic": str}
"""What a match must have, and of which type."""


@dataclass(frozen=True, slots=True)
class PhraseList:
    """Phrases, or mentions with their places; one of the two is empty."""

    phrases: tuple[str, ...] = ()
    mentions: tuple[Occurrence, ...] = ()


def read_source(source: PhraseSource, topic: str | None) -> PhraseList:
    """Return the phrases or mentions of a source.

    Args:
        source: A file whose name ends in ``.jsonl`` has matches, as ``mine`` writes them; any other
            file has a phrase on each line. In place of a file, the phrases or matches themselves.
        topic: Only the matches of this topic.

    Returns:
        What is to be put into groups. UsageError is raised if a line is not valid, if there is
        nothing to group, and for a topic of phrases, which have none.
    """
    if isinstance(source, str | Path):
        path = Path(source)
        name = str(path)
        items: Iterable[Any] = _read_file(path)
    else:
        name, items = "the source", source
    phrases, mentions, topics = [], [], set()
    for item in items:
        if isinstance(item, Match):
            topics.add(item.topic)
            if topic in (None, item.topic):
                place = (item.id, item.turn, item.speaker, item.start, item.end)
                mentions.append(Occurrence(*place, item.text, item.cosine))
        else:
            check_phrase("phrase", item)
            phrases.append(item)
    _check(name, topic, phrases, mentions, topics)
    return PhraseList(tuple(phrases), tuple(mentions))


def _check(
    name: str,
    topic: str | None,
    phrases: list[str],
    mentions: list[Occurrence],
    topics: set[str],
) -> None:
    if phrases and topics:
        raise UsageError(f"{name} has both phrases and matches: give only one of the two")
    if phrases and topic is not None:
        raise UsageError(
            f"{name} has phrases, which belong to no topic, and the topic is {show_value(topic)}: "
            "leave it out, or name a file of matches, which ends in .jsonl"
        )
    if topics and not mentions:
        raise UsageError(
            f"{name} has no match of topic {show_value(topic)}: its topics are "
            f"{list_names(sorted(topics), topic or '')}"
        )
    if not phrases and not mentions:
        raise UsageError(f"{name} has no phrase and no match: there is nothing to put into groups")


def _read_file(path: Path) -> Iterator[str | Match]:
    if path.suffix in OTHER_FORMATS:
        raise UsageError(
            f"{path} ends in {path.suffix}, and matches are read from JSON lines: write them by "
            "mine --out matches.jsonl, or put phrases into a file of another name, as phrases.txt"
        )
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                is_match = path.suffix == ".jsonl"
                yield _parse_match(path, number, line) if is_match else line.strip()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name another file") from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not text in UTF-8: convert it, or name another file"
        ) from error


def _parse_match(path: Path, number: int, line: str) -> Match:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{path}:{number} is not JSON: a file that ends in .jsonl has matches, as mine writes "
            "them; phrases are in a file of another name, as phrases.txt"
        ) from error
    wrong = _find_wrong_field(row)
    if wrong:
        raise UsageError(f"{path}:{number} is not a match: {wrong}. Write the file with mine")
    values = {name: row.get(name) for name in Match.__slots__}
    return Match(**values)


def _find_wrong_field(row: Any) -> str:
    """Return which field of a match is not as it must be; "" if all are."""
    if not isinstance(row, Mapping):
        return "it is not an object"
    for name, kind in _FIELDS.items():
        value = row.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            return f"{name} is missing, or is no {'string' if kind is str else 'integer'}"
    return "" if 0 <= row["start"] < row["end"] else "end must be larger than start"
