"""Excerpts: sentences around spans, cut at words, and always the document's own characters."""

from __future__ import annotations

import pytest

from hybrid_search.client import Client
from hybrid_search.search.excerpts import AROUND, LONGEST_SENTENCE, Excerpt, list_excerpts
from hybrid_search.search.hit import Hit, Span, TurnPlace

FIRST = "Good morning. I want my money back, please. It is broken."
SECOND = "Of course! One moment."
TEXT = f"{FIRST}\n{SECOND}"
START = 100


def make_hit(*words: str, text: str = TEXT, turns: list[TurnPlace] | None = None) -> Hit:
    spans = [
        Span(start, start + len(word), word, 0.5)
        for word in words
        for start in [START + text.index(word)]
    ]
    places = turns or [
        TurnPlace(0, START, START + len(FIRST), "customer"),
        TurnPlace(1, START + len(FIRST) + 1, START + len(text), "agent"),
    ]
    return Hit("a", 0, 0.5, 1, 0.5, 1, 1, {}, spans, text=text, start=START, turns=places)


def mark(excerpt: Excerpt) -> str:
    return "".join(f"[{text}]" if is_span else text for text, is_span in excerpt.split())


def test_a_short_turn_is_shown_whole_with_its_span() -> None:
    (excerpt,) = list_excerpts(make_hit("my money back"))
    assert mark(excerpt) == "Good morning. I want [my money back], please. It is broken."
    assert (excerpt.start, excerpt.end) == (START, START + len(FIRST))
    assert not excerpt.is_cut_before
    assert not excerpt.is_cut_after


def test_spans_of_one_turn_share_an_excerpt_and_others_have_their_own_best_first() -> None:
    excerpts = list_excerpts(make_hit("One moment", "broken", "my money back"))
    assert [mark(excerpt) for excerpt in excerpts] == [
        "Of course! [One moment].",
        "Good morning. I want [my money back], please. It is [broken].",
    ]


def test_a_long_turn_is_cut_at_words_around_the_sentence() -> None:
    text = "word " * 100 + "Then. My money back now. " + "other " * 100
    turns = [TurnPlace(0, START, START + len(text))]
    (excerpt,) = list_excerpts(make_hit("My money back", text=text, turns=turns))
    assert excerpt.is_cut_before
    assert excerpt.is_cut_after
    assert excerpt.text == text[excerpt.start - START : excerpt.end - START]
    assert excerpt.text.split()[0] in ("word", "Then.")
    assert excerpt.text.split()[-1] == "other"
    before, _, after = mark(excerpt).partition("[My money back]")
    assert len(before) <= AROUND
    assert len(after) <= AROUND + len(" now. ")


def test_a_turn_without_an_end_of_a_sentence_is_cut_around_the_span() -> None:
    text = "word " * 500 + "my money back " + "other " * 500
    turns = [TurnPlace(0, START, START + len(text))]
    (excerpt,) = list_excerpts(make_hit("my money back", text=text, turns=turns))
    assert "[my money back]" in mark(excerpt)
    assert len(excerpt.text) < LONGEST_SENTENCE


def test_a_text_without_blanks_is_cut_in_time_and_keeps_its_span() -> None:
    text = "x" * 1_000_000 + "my money" + "y" * 1_000_000
    turns = [TurnPlace(0, START, START + len(text))]
    (excerpt,) = list_excerpts(make_hit("my money", text=text, turns=turns))
    assert "[my money]" in mark(excerpt)
    assert len(excerpt.text) < 1_000


def test_of_a_span_in_another_passage_there_are_its_words() -> None:
    elsewhere = Span(5_000, 5_005, "there", 0.5)
    hit = make_hit("broken")
    hit.spans.append(elsewhere)
    assert mark(list_excerpts(hit)[1]) == "[there]"


def test_a_hit_without_spans_is_its_passage() -> None:
    assert list_excerpts(make_hit()) == [Excerpt(START, TEXT)]


@pytest.mark.parametrize("group_by", ["document", "passage"])
def test_excerpts_of_the_sample_are_its_characters_and_hold_every_span(
    sample: Client, group_by: str
) -> None:
    for hit in sample.query("I want my money back", size=30, spans=10, group_by=group_by):
        text = sample.open_document(hit.id).text
        excerpts = list_excerpts(hit)
        for excerpt in excerpts:
            assert excerpt.text == text[excerpt.start : excerpt.end]
            shown = [piece for piece, is_span in excerpt.split() if is_span]
            ordered = sorted(excerpt.spans, key=lambda span: span.start)
            assert shown == [span.text for span in ordered]
        spans = [span for excerpt in excerpts for span in excerpt.spans]
        assert sorted(map(hash, spans)) == sorted(map(hash, hit.spans))
