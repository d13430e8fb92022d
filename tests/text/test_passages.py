"""Passages: every word and every span belongs to exactly one, and no span crosses a turn."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hybrid_search.ingest import document_parser
from hybrid_search.text.passages import (
    BATCH_CHARACTERS,
    EDGE_CHARACTERS,
    LEFT_WORDS,
    MAX_CHARACTERS,
    PASSAGE_WORDS,
    WINDOW_WORDS,
    split,
    split_batches,
)
from hybrid_search.text.types import Document, Part, Passage, Turn
from hybrid_search.text.words import words

Span = tuple[int, int, int]
"""Turn, start and end of a span in the document."""

short_turns = st.lists(st.integers(0, 60), min_size=1, max_size=12)
turns = st.lists(st.one_of(st.integers(0, 40), st.integers(100, 600)), min_size=1, max_size=6)
quick_settings = settings(deadline=None, max_examples=40)


def make_turn_text(count: int) -> str:
    """Return a turn of so many words, with punctuation at its ends and between."""
    return f"... {', '.join(f'w{number}' for number in range(count))} ?!" if count else "..."


def make_document(counts: list[int]) -> Document:
    return document_parser.parse(
        json.dumps(
            {"id": "d", "turns": [{"text": make_turn_text(count)} for count in counts]}
        ).encode()
    )[0]


def parts(passages: list[Passage]) -> list[Part]:
    return [part for passage in passages for part in passage.parts]


def spans_within(turn: int, word_ranges: list[list[int]], core: int) -> list[Span]:
    """Return every span of 1..20 words that starts in the first `core` words."""
    return [
        (turn, word_ranges[first][0], word_ranges[last][1])
        for first in range(core)
        for last in range(first, min(first + 20, len(word_ranges)))
    ]


def test_the_work_for_a_long_turn_grows_with_its_words_and_not_faster() -> None:
    """The encoder reads 131 words of a piece with 10 before and 19 behind: 160 / 131 = 1.22."""
    for count in (10_000, 40_000):
        (turn,) = make_document([count]).turns
        pieces = parts(list(split(make_document([count]))))
        words_read = sum(len(words(turn.text[piece.window_start : piece.end])) for piece in pieces)
        assert sum(piece.core for piece in pieces) == count
        assert words_read <= 1.25 * count


@quick_settings
@given(turns)
@example([160, 161, 1, 0, 79])
@example([600] * 3)
def test_every_span_of_a_turn_starts_in_one_core_and_lies_in_that_part(counts: list[int]) -> None:
    parsed = make_document(counts)
    expected: list[Span] = []
    for number, turn in enumerate(parsed.turns):
        turn_words = words(turn.text, turn.start).tolist()
        expected += spans_within(number, turn_words, len(turn_words))
    spans = [
        span
        for part in parts(list(split(parsed)))
        for span in spans_within(part.turn, part.words.tolist(), part.core)
    ]
    assert Counter(spans) == Counter(expected)


@quick_settings
@given(turns)
def test_no_part_holds_a_word_of_another_turn(counts: list[int]) -> None:
    parsed = make_document(counts)
    for part in parts(list(split(parsed))):
        turn = parsed.turns[part.turn]
        assert turn.start <= part.window_start <= part.start <= part.words[0, 0]
        assert part.words[-1, 1] <= part.end <= turn.end


@quick_settings
@given(turns)
def test_only_turns_longer_than_a_window_are_cut(counts: list[int]) -> None:
    parsed = make_document(counts)
    pieces: dict[int, list[tuple[int, int]]] = {number: [] for number in range(len(counts))}
    for part in parts(list(split(parsed))):
        pieces[part.turn].append((part.start, part.end))
    for number, (turn, count) in enumerate(zip(parsed.turns, counts, strict=True)):
        assert (pieces[number] == [(turn.start, turn.end)]) == (1 <= count <= WINDOW_WORDS)
        assert (len(pieces[number]) > 1) == (count > WINDOW_WORDS)


@quick_settings
@given(turns)
def test_what_the_encoder_sees_of_a_part_fits_its_window(counts: list[int]) -> None:
    parsed = make_document(counts)
    for part in parts(list(split(parsed))):
        assert len(words(parsed.text[part.window_start : part.end])) <= WINDOW_WORDS


@quick_settings
@given(short_turns)
def test_turns_are_packed_until_the_next_one_would_not_fit(counts: list[int]) -> None:
    passages = list(split(make_document(counts)))
    assert all(passage.words <= PASSAGE_WORDS for passage in passages)
    for current, following in pairwise(passages):
        assert current.words + len(following.parts[0].words) > PASSAGE_WORDS


@quick_settings
@given(turns)
def test_passages_are_numbered_and_begin_and_end_with_their_parts(counts: list[int]) -> None:
    passages = list(split(make_document(counts)))
    assert [passage.ordinal for passage in passages] == list(range(len(passages)))
    for passage in passages:
        if passage.parts:
            assert (passage.start, passage.end) == (passage.parts[0].start, passage.parts[-1].end)
    assert all(current.start < following.start for current, following in pairwise(passages))


def test_a_passage_is_the_text_of_its_turns() -> None:
    parsed = make_document([2, 1])
    assert [parsed.text[passage.start : passage.end] for passage in split(parsed)] == [
        "... w0, w1 ?!\n... w0 ?!"
    ]


def test_a_long_turn_is_cut_into_equal_pieces_that_go_on_for_19_words() -> None:
    # A piece may have 160 - 10 - 19 = 131 words: 300 words take three, of 100 each.
    parsed = make_document([300])
    passages = list(split(parsed))
    assert [(passage.parts[0].core, passage.words) for passage in passages] == [
        (100, 119),
        (100, 119),
        (100, 100),
    ]
    texts = [parsed.text[passage.start : passage.end] for passage in passages]
    # the turn's own ends keep their punctuation
    assert [text.split(",")[0] for text in texts] == ["... w0", "w100", "w200"]
    assert [text.split(" ")[-1] for text in texts] == ["w118", "w218", "?!"]


def test_a_piece_is_encoded_with_the_ten_words_before_it() -> None:
    assert LEFT_WORDS == 10
    parsed = make_document([300])
    assert [
        parsed.text[part.window_start :].split(",")[0] for part in parts(list(split(parsed)))
    ] == ["... w0", "w90", "w190"]


def test_a_turn_just_over_the_window_is_cut_in_two() -> None:
    assert [part.core for part in parts(list(split(make_document([160, 161]))))] == [160, 80, 81]


def test_a_passage_does_not_reach_into_empty_turns_at_its_ends() -> None:
    parsed = make_document([0, 2, 0])
    assert [parsed.text[passage.start : passage.end] for passage in split(parsed)] == [
        make_turn_text(2)
    ]


@pytest.mark.parametrize("counts", [[0], [0, 0]])
def test_a_document_without_words_is_one_passage_without_parts(counts: list[int]) -> None:
    parsed = make_document(counts)
    (passage,) = split(parsed)
    assert (passage.ordinal, passage.parts, passage.words) == (0, (), 0)
    assert parsed.text[passage.start : passage.end] == parsed.text


KINDS = {
    "log": "12.5,",
    "base64": "aGVsbG8gd29ybGQ+/=",
    "address": "/path/segment?x=1&",
    "one letter": "a",
    "letters with a mark": "e\u0301",
    "marks": "\u0301",
    "emoji": "😀",
    "family": "👩\u200d",
    "flags": "🇩🇪",
    "ideographs": "漢",
    "lines": "\n",
    "punctuation": "!",
    "short words far apart": "a" + "-" * 3000,
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("characters", [50_000, 100_000])
def test_what_is_read_of_any_text_grows_with_its_length(kind: str, characters: int) -> None:
    """A part has 2,000 characters at most, 500 before it, 500 behind: it is read 1.5 times."""
    repeated = (kind * (characters // len(kind) + 1))[:characters]
    document = Document("d", f"begin {repeated} end", (Turn(f"begin {repeated} end"),))
    passages = list(split(document))
    parts_read = [document.text[part.window_start : part.end] for part in parts(passages)]
    assert max(map(len, parts_read)) <= MAX_CHARACTERS + 2 * EDGE_CHARACTERS
    assert sum(map(len, parts_read)) <= 1.6 * len(document.text) + 4000
    assert max(passage.end - passage.start for passage in passages) <= 3000
    cores = [word for part in parts(passages) for word in part.words[: part.core].tolist()]
    assert cores == words(document.text).tolist()


def test_a_turn_without_a_word_makes_no_passage_longer() -> None:
    texts = ["hello", "!" * 100_000, "bye"]
    starts = [0, 6, 100_007]
    turns = tuple(Turn(text, start) for text, start in zip(texts, starts, strict=True))
    passages = list(split(Document("d", "\n".join(texts), turns)))
    assert [(passage.start, passage.end) for passage in passages] == [(0, 5), (100_007, 100_010)]


def test_a_batch_has_so_many_passages_or_so_many_characters() -> None:
    ordinary = list(split(make_document([70] * 100)))
    batches = split_batches(ordinary, 64, lambda passage: passage)
    assert [len(batch) for batch in batches] == [64, 36]
    long = list(split(Document("d", "a" * 100_000, (Turn("a" * 100_000),))))
    batches = split_batches(long, 64, lambda passage: passage)
    assert all(
        sum(passage.end - passage.start for passage in batch) <= BATCH_CHARACTERS
        for batch in batches
    )
