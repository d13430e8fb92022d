"""The hard sample as labelled data: its calls in English, and 46 topics with marked spans.

In its 88 calls next to no word of a topic stands in the turns that are about it, and others only
sound like it. It was written for this project; no model is trained on it.
"""

from __future__ import annotations

import json
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.quality.marks import MarkedText
from hybrid_search.ingest import document_parser
from hybrid_search.ingest.sources import files
from hybrid_search.text.types import Document

CALLS = Path(__file__).parents[1] / "data" / "hard_sample" / "calls.jsonl"
TOPICS = CALLS.with_name("topics.jsonl")

ENGLISH = ("en",)
"""Calls in other languages are left out where no model under measurement was trained on them."""

TurnKey = tuple[str, int]
"""A turn: the id of its call, and its number in it."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A phrase, the turns in which a person marked a span for it, and all calls that have it."""

    phrase: str
    turns: frozenset[TurnKey]
    calls: frozenset[str]


def read_turns(languages: Container[str] = ENGLISH) -> dict[TurnKey, str]:
    """Return the text of every turn of the calls in some languages."""
    return {
        (document.id, number): turn.text
        for document in _read_calls(languages).values()
        for number, turn in enumerate(document.turns)
    }


def read_topics(languages: Container[str] = ENGLISH) -> list[Topic]:
    """Return the topics with what is labelled in the calls in some languages."""
    return [_build_topic(record) for record in _read_records(_read_calls(languages))]


def _build_topic(record: dict[str, Any]) -> Topic:
    turns = frozenset((span["id"], span["turn"]) for span in record["spans"])
    return Topic(record["phrase"], turns, frozenset(record["calls"]))


def read_phrases() -> list[str]:
    """Return the phrases of all topics."""
    lines = TOPICS.read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["phrase"] for line in lines]


def read_marked_turns() -> list[MarkedText]:
    """Return the turn of every span that is labelled in English, with the place of that span."""
    calls = _read_calls()
    return [
        _mark(calls[span["id"]], record["phrase"], span)
        for record in _read_records(calls)
        for span in record["spans"]
    ]


def _mark(call: Document, phrase: str, span: dict[str, Any]) -> MarkedText:
    turn = call.turns[span["turn"]]
    place = (span["start"] - turn.start, span["end"] - turn.start)
    return MarkedText(phrase, turn.text, (place,))


def _read_calls(languages: Container[str] = ENGLISH) -> dict[str, Document]:
    """Return the calls in some languages by their ids."""
    documents = (document_parser.parse(line.data)[0] for line in files.read([str(CALLS)]))
    return {
        document.id: document
        for document in documents
        if document.metadata["language"] in languages
    }


def _read_records(calls: Container[str]) -> list[dict[str, Any]]:
    """Return the rows of ``topics.jsonl``, their labels cut to `calls`."""
    records = map(json.loads, TOPICS.read_text(encoding="utf-8").splitlines())
    return [_cut_labels(record, calls) for record in records]


def _cut_labels(record: dict[str, Any], calls: Container[str]) -> dict[str, Any]:
    spans = [span for span in record["spans"] if span["id"] in calls]
    return {**record, "spans": spans, "calls": [call for call in record["calls"] if call in calls]}
