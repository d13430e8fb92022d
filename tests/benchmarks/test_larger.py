"""Copies of calls with words exchanged have ids of their own and as frequent words."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from benchmarks.speed import larger
from hybrid_search.ingest.types import SourceLine
from tests.helpers.source_lines import make_lines

VOCABULARY = [f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]


@pytest.fixture(name="calls")
def build_calls() -> list[SourceLine]:
    """Return twenty calls, of which the first word of the vocabulary is in all, the last in one."""
    texts = (f"The {' '.join(VOCABULARY[: number + 1])}" for number in range(20))
    documents = ({"id": text[-5:], "turns": [{"speaker": "agent", "text": text}]} for text in texts)
    return make_lines(documents)


def _read(lines: list[SourceLine]) -> list[dict[str, Any]]:
    return [json.loads(line.data) for line in lines]


def test_the_calls_come_first_as_they_are(calls: list[SourceLine]) -> None:
    copied = list(larger.copy_calls(calls, 2))
    assert copied[:20] == calls
    assert len({document["id"] for document in _read(copied)}) == 60


def test_a_copy_has_words_as_frequent_as_the_calls(calls: list[SourceLine]) -> None:
    def count_words(lines: list[SourceLine]) -> Counter[str]:
        turns = (turn for document in _read(lines) for turn in document["turns"])
        return Counter(word for turn in turns for word in turn["text"].split())

    copy = list(larger.copy_calls(calls, 1))[20:]
    words, copied_words = count_words(calls), count_words(copy)
    assert words != copied_words
    assert sorted(words.values()) == sorted(copied_words.values())
    assert copied_words["The"] == words["The"]
