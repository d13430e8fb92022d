"""Offsets: every span of a corpus of awkward texts is exactly the characters it names.

On every backend.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import Result, Span
from hybrid_search.client import Client
from hybrid_search.encoder import Encoder
from hybrid_search.search.span_search import best_spans
from hybrid_search.text.words import include_marks, words
from tests.helpers.offset_corpus import TEXTS

PHRASES = ["refund request", "返金", "😀 please"]
WORDLESS = {name for name, text in TEXTS.items() if not len(words(text))}


def as_text(name: str) -> dict[str, Any]:
    return {"id": f"{name} as text", "text": TEXTS[name]}


def as_turns(name: str) -> dict[str, Any]:
    """Return the text twice as turns, after a turn outside the BMP and between empty ones."""
    texts = ["😀👩\u200d👧 hello\r\n", "", TEXTS[name], "", "...", TEXTS[name], ""]
    return {
        "id": f"{name} as turns",
        "turns": [
            {"speaker": f"speaker {number}", "text": text} for number, text in enumerate(texts)
        ],
    }


DOCUMENTS = {
    document["id"]: document for name in TEXTS for document in (as_text(name), as_turns(name))
}


def turns_of(document: dict[str, Any]) -> list[str]:
    return (
        [turn["text"] for turn in document["turns"]] if "turns" in document else [document["text"]]
    )


def assert_true(span: Span, document: dict[str, Any]) -> None:
    turns = turns_of(document)
    starts = [0, *accumulate(len(turn) + 1 for turn in turns)]
    assert "\n".join(turns)[span.start : span.end] == span.text
    assert turns[span.turn][span.turn_start : span.turn_end] == span.text
    assert span.start - span.turn_start == starts[span.turn]
    assert span.speaker == (f"speaker {span.turn}" if "turns" in document else None)
    assert_words(span.text, turns[span.turn], span.turn_start, span.turn_end)


@cache
def words_of(text: str) -> list[list[int]]:
    word_bounds: list[list[int]] = include_marks(text, words(text)).tolist()
    return word_bounds


def assert_words(text: str, turn: str, start: int, end: int) -> None:
    """Check that a span has 1 to 20 words, and starts and ends exactly at word boundaries.

    There is no punctuation, space or loose mark at its ends, but what is a word's own.
    """
    inside = [word for word in words_of(turn) if start <= word[0] and word[1] <= end]
    assert 1 <= len(inside) <= 20
    assert (inside[0][0], inside[-1][1]) == (start, end)
    text = text.strip("<>[]{}.")
    assert unicodedata.category(text[0])[0] in "LNS"
    # marks and joiners belong to the letter before them (WB4), and a word of Hebrew may end with
    # its geresh
    assert (
        unicodedata.category(text.rstrip("\u00ad\u200d\u200c\u2060\u202c\u200f\u2069\ufe0f")[-1])[0]
        in "LNMS"
    )


@pytest.fixture
def filled_client(client: Client, tmp_path: Path) -> Client:
    """The corpus in one index, each text once as text and once as turns."""
    summary = client.ingest(DOCUMENTS.values(), rejects=tmp_path / "rejected.jsonl")
    assert (summary.documents, summary.failed) == (len(DOCUMENTS), 0)
    return client


def assert_all_true(result: Result) -> set[str]:
    """Check all spans of a result, and return the documents that had some."""
    for hit in result.hits:
        for span in hit.spans:
            assert_true(span, DOCUMENTS[hit.id])
    return {hit.id for hit in result.hits if hit.spans}


def test_every_span_of_every_text_says_the_characters_that_it_names(filled_client: Client) -> None:
    matched_ids: set[str] = set()
    for phrase in PHRASES:
        for alpha in (0.0, 0.5, 1.0):
            result = filled_client.query(phrase, alpha=alpha, size=1000, spans=100)
            matched_ids |= assert_all_true(result)
            for name in WORDLESS:
                assert not any(hit.spans for hit in result.hits if hit.id == f"{name} as text")
    assert matched_ids == DOCUMENTS.keys() - {f"{name} as text" for name in WORDLESS}


def test_refined_spans_and_those_of_passages_are_true_too(filled_client: Client) -> None:
    assert assert_all_true(
        filled_client.query("refund request", alpha=1.0, size=1000, refine="isolate")
    )
    by_passage = filled_client.query("refund request", alpha=1.0, size=1000, group_by="passage")
    assert assert_all_true(by_passage)
    for hit in by_passage.hits:
        assert (
            "\n".join(turns_of(DOCUMENTS[hit.id]))[hit.start : hit.start + len(hit.text)]
            == hit.text
        )


@pytest.mark.parametrize("name", TEXTS)
def test_best_spans_of_a_text_alone_are_true_too(real_encoder: Encoder, name: str) -> None:
    text = TEXTS[name]
    spans = best_spans(real_encoder, "refund request", text, 1000)
    assert bool(spans) == (name not in WORDLESS)
    for span in spans:
        assert text[span.start : span.end] == span.text
        assert_words(span.text, text, span.start, span.end)


@pytest.mark.parametrize("name", TEXTS)
def test_tokens_name_characters_of_their_text_in_order(real_encoder: Encoder, name: str) -> None:
    text = TEXTS[name]
    starts, ends = real_encoder.encode([text])[0].offsets.T.tolist()
    assert all(0 <= start < end <= len(text) for start, end in zip(starts, ends, strict=True))
    assert starts == sorted(starts) and ends == sorted(ends)
