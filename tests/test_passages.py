"""Documents are cut so that every word and every span belongs to exactly one passage, and no span crosses a turn."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hybrid_search.ingest import documents
from hybrid_search.passages import LEFT_WORDS, PASSAGE_WORDS, WINDOW_WORDS, split
from hybrid_search.types import Document, Part, Passage
from hybrid_search.words import words

Span = tuple[int, int, int]
"""Turn, start and end of a span in the document."""

short_turns = st.lists(st.integers(0, 60), min_size=1, max_size=12)
turns = st.lists(st.one_of(st.integers(0, 40), st.integers(100, 600)), min_size=1, max_size=6)
some = settings(deadline=None, max_examples=40)


def said(count: int) -> str:
    """A turn of so many words, with punctuation at its ends and between."""
    return f"... {', '.join(f'w{number}' for number in range(count))} ?!" if count else "..."


def document(counts: list[int]) -> Document:
    return documents.parse(json.dumps({"id": "d", "turns": [{"text": said(count)} for count in counts]}).encode())[0]


def parts(passages: list[Passage]) -> list[Part]:
    return [part for passage in passages for part in passage.parts]


def spans_within(turn: int, found: list[list[int]], core: int) -> list[Span]:
    """Every span of 1..20 of the words `found` that starts in the first `core` of them."""
    return [(turn, found[first][0], found[last][1]) for first in range(core) for last in range(first, min(first + 20, len(found)))]


@some
@given(turns)
@example([160, 161, 1, 0, 79])
@example([600] * 3)
def test_every_span_of_a_turn_starts_in_one_core_and_lies_in_that_part(counts: list[int]) -> None:
    read = document(counts)
    expected: list[Span] = []
    for number, turn in enumerate(read.turns):
        every = words(turn.text, turn.start).tolist()
        expected += spans_within(number, every, len(every))
    found = [span for part in parts(list(split(read))) for span in spans_within(part.turn, part.words.tolist(), part.core)]
    assert Counter(found) == Counter(expected)


@some
@given(turns)
def test_every_word_of_the_text_is_core_of_one_part(counts: list[int]) -> None:
    read = document(counts)
    cores = [tuple(word) for part in parts(list(split(read))) for word in part.words[: part.core].tolist()]
    assert cores == [tuple(word) for turn in read.turns for word in words(turn.text, turn.start).tolist()]


@some
@given(turns)
def test_no_part_holds_a_word_of_another_turn(counts: list[int]) -> None:
    read = document(counts)
    for part in parts(list(split(read))):
        turn = read.turns[part.turn]
        assert turn.start <= part.window_start <= part.start <= part.words[0, 0]
        assert part.words[-1, 1] <= part.end <= turn.end


@some
@given(turns)
def test_only_turns_longer_than_a_window_are_cut(counts: list[int]) -> None:
    read = document(counts)
    pieces: dict[int, list[tuple[int, int]]] = {number: [] for number in range(len(counts))}
    for part in parts(list(split(read))):
        pieces[part.turn].append((part.start, part.end))
    for number, (turn, count) in enumerate(zip(read.turns, counts, strict=True)):
        assert (pieces[number] == [(turn.start, turn.end)]) == (1 <= count <= WINDOW_WORDS)
        assert (len(pieces[number]) > 1) == (count > WINDOW_WORDS)


@some
@given(turns)
def test_what_the_encoder_sees_of_a_part_fits_its_window(counts: list[int]) -> None:
    read = document(counts)
    for part in parts(list(split(read))):
        assert len(words(read.text[part.window_start : part.end])) <= WINDOW_WORDS


@some
@given(short_turns)
def test_turns_are_packed_until_the_next_one_would_not_fit(counts: list[int]) -> None:
    passages = list(split(document(counts)))
    assert all(passage.words <= PASSAGE_WORDS for passage in passages)
    for one, following in pairwise(passages):
        assert one.words + len(following.parts[0].words) > PASSAGE_WORDS


@some
@given(turns)
def test_passages_are_numbered_and_begin_and_end_with_their_parts(counts: list[int]) -> None:
    passages = list(split(document(counts)))
    assert [passage.ordinal for passage in passages] == list(range(len(passages)))
    for passage in passages:
        if passage.parts:
            assert (passage.start, passage.end) == (passage.parts[0].start, passage.parts[-1].end)
    assert all(one.start < following.start for one, following in pairwise(passages))


def test_a_passage_is_the_text_of_its_turns() -> None:
    read = document([2, 1])
    assert [read.text[passage.start : passage.end] for passage in split(read)] == ["... w0, w1 ?!\n... w0 ?!"]


def test_a_long_turn_is_cut_into_equal_pieces_that_go_on_for_19_words() -> None:
    # A piece may have 160 - 10 - 19 = 131 words: 300 words take three, of 100 each.
    read = document([300])
    passages = list(split(read))
    assert [(passage.parts[0].core, passage.words) for passage in passages] == [(100, 119), (100, 119), (100, 100)]
    texts = [read.text[passage.start : passage.end] for passage in passages]
    assert [text.split(",")[0] for text in texts] == ["... w0", "w100", "w200"]  # the turn's own ends keep their punctuation
    assert [text.split(" ")[-1] for text in texts] == ["w118", "w218", "?!"]


def test_a_piece_is_encoded_with_the_ten_words_before_it() -> None:
    assert LEFT_WORDS == 10
    read = document([300])
    assert [read.text[part.window_start :].split(",")[0] for part in parts(list(split(read)))] == ["... w0", "w90", "w190"]


def test_a_turn_just_over_the_window_is_cut_in_two() -> None:
    assert [part.core for part in parts(list(split(document([160, 161]))))] == [160, 80, 81]


def test_turns_without_a_word_are_in_no_part() -> None:
    read = document([3, 0, 2])
    assert [part.turn for part in parts(list(split(read)))] == [0, 2]


def test_a_passage_does_not_reach_into_empty_turns_at_its_ends() -> None:
    read = document([0, 2, 0])
    assert [read.text[passage.start : passage.end] for passage in split(read)] == [said(2)]


@pytest.mark.parametrize("counts", [[0], [0, 0]])
def test_a_document_without_words_is_one_passage_without_parts(counts: list[int]) -> None:
    read = document(counts)
    (passage,) = split(read)
    assert (passage.ordinal, passage.parts, passage.words) == (0, (), 0)
    assert read.text[passage.start : passage.end] == read.text


def test_empty_turns_keep_their_number() -> None:
    read = documents.parse(json.dumps({"id": "d", "turns": [{"text": ""}, {"text": "one"}, {"text": ""}, {"text": "two"}]}).encode())[0]
    (passage,) = split(read)
    assert [(part.turn, read.text[part.start : part.end]) for part in passage.parts] == [(1, "one"), (3, "two")]


def test_a_text_is_one_turn_whatever_its_lines() -> None:
    read = documents.parse(json.dumps({"id": "d", "text": "one two\nthree\r\n\r\nfour"}).encode())[0]
    (passage,) = split(read)
    assert [len(part.words) for part in passage.parts] == [4]
