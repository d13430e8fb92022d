"""Turns in which people marked a clause and the fewest words that say it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.quality.written import DEV_DOMAINS, MORE_TOPICS
from export.boundaries import corpora

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class MarkedTurn:
    """A turn, the phrasings that it answers, and the places of clause and core in its text."""

    text: str
    phrases: tuple[str, ...]
    clause: Place
    core: Place


def read_turns(data: Path, languages: Collection[str] = ()) -> list[MarkedTurn]:
    """Return the turns that say the written topics for training, in English and `languages`."""
    folder = data / "written"
    paths = (folder / "topics.jsonl", folder / "long_turns.jsonl", MORE_TOPICS)
    rows = [row for path in paths for row in corpora.read_rows(path)]
    rows += [
        row for row in corpora.read_rows(corpora.OTHER_LANGUAGES) if row["language"] in languages
    ]
    topics = (row for row in rows if row["domain"] not in DEV_DOMAINS)
    return [turn for topic in topics for turn in _parse_topic(topic)]


def _parse_topic(topic: dict[str, Any]) -> Iterator[MarkedTurn]:
    phrases = tuple(topic["phrases"].values())
    for turn in topic["says"]:
        start = turn["text"].index(turn["span"])
        core = turn["text"].index(turn["core"], start)
        yield MarkedTurn(
            turn["text"],
            phrases,
            (start, start + len(turn["span"])),
            (core, core + len(turn["core"])),
        )


def read_requests(data: Path) -> list[MarkedTurn]:
    """Return the marked requests of natcs_utterances."""
    folder = data / "natcs_utterances"
    texts = {row["id"]: row["text"] for row in corpora.read_rows(folder / "utterances.jsonl")}
    marks = corpora.read_rows(folder / "marks.jsonl")
    return [_parse_mark(texts[row["id"]], row) for row in marks]


def _parse_mark(text: str, row: dict[str, Any]) -> MarkedTurn:
    return MarkedTurn(text, (row["phrase"],), tuple(row["max"]), tuple(row["min"]))
