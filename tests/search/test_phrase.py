"""A phrase's vector, with and without a context, and the best spans of one text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from hybrid_search import best_spans as public_best_spans
from hybrid_search import phrase_similarity
from hybrid_search.encoder import Encoder
from hybrid_search.errors import UsageError
from hybrid_search.search import span_search
from hybrid_search.search.hit import Span
from hybrid_search.search.phrase_vector import query_vector, query_vectors, similarity
from hybrid_search.search.span_search import best_spans
from hybrid_search.search.types import PassageSpans
from hybrid_search.text import passages
from hybrid_search.text.types import Document, Encoding, Floats, Turn
from hybrid_search.text.words import words
from tests.helpers.tiny_encoder import TinyEncoder

TEXT = (
    "Hello, thank you for calling. I'd like my money back for the blue jacket: it never arrived! "
    "Can you tell me the opening hours, too?"
)
RIVER = "We sat on the bank of the river and watched the water."
MONEY = "I went to the bank to deposit money into my account."
GERMAN = "Die Bank in der Hauptstraße hat heute geschlossen."


def cosine(first: Floats, second: Floats) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def assert_true_offsets(spans: list[Span], text: str) -> None:
    starts, ends = words(text).T.tolist()
    for span in spans:
        assert text[span.start : span.end] == span.text
        assert span.start in starts and span.end in ends
        assert (span.turn, span.turn_start, span.turn_end) == (0, span.start, span.end)


def test_a_phrase_has_a_unit_vector(real_encoder: Encoder) -> None:
    phrase_vector = query_vector(real_encoder, "refund request")
    assert phrase_vector.shape == (real_encoder.info.dimension,)
    assert np.linalg.norm(phrase_vector) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("phrase_text", ["bank", "Bank", "BANK"])
def test_a_phrase_is_found_in_its_context_in_any_case(
    real_encoder: Encoder, phrase_text: str
) -> None:
    assert np.array_equal(
        query_vector(real_encoder, phrase_text, RIVER), query_vector(real_encoder, "bank", RIVER)
    )
    assert np.array_equal(
        query_vector(real_encoder, "bank", RIVER.upper()),
        query_vector(real_encoder, "BANK", RIVER.upper()),
    )


@pytest.mark.parametrize(
    ("phrase_text", "context", "surface"),
    [
        ("bank", RIVER, "bank"),
        ("bank", "The bank by the river is steep. The bank lent us money.", "bank"),  # the first
        ("art", "Let us start the art class.", "art class"),  # not the one inside "start"
        # "ß" further on is two letters when folded, and every place behind it moves by one
        ("bank", GERMAN, "Bank"),
        ("heute", GERMAN, "heute"),
        ("GESCHLOSSEN", GERMAN, "geschlossen"),
        ("hauptstrasse", GERMAN, "Hauptstraße"),
        ("Hauptstraße", "Die Hauptstrasse ist heute gesperrt.", "Hauptstrasse"),
        ("İSTANBUL", "Uçak İstanbul'a indi.", "İstanbul"),  # "İ" is "i" and a dot above
        ("indi", "Uçak İİİİ İstanbul'a indi.", "indi"),
        ("office", "Our oﬃce is closed.", "oﬃce"),  # a ligature is three letters
    ],
)
def test_a_phrase_in_a_context_is_its_tokens_there(
    real_encoder: Encoder, phrase_text: str, context: str, surface: str
) -> None:
    start = context.index(surface)
    encoding = real_encoder.encode([context])[0]
    end = start + len(surface.removesuffix(" class"))
    inside = (encoding.offsets[:, 1] > start) & (encoding.offsets[:, 0] < end)
    assert inside.any()
    assert cosine(
        query_vector(real_encoder, phrase_text, context), encoding.vectors[inside].sum(axis=0)
    ) == pytest.approx(1.0, abs=1e-5)


class RecordingEncoder(TinyEncoder):
    """Remembers what it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        self.texts += texts
        return super().encode(texts)


@pytest.mark.parametrize(
    ("phrases", "context", "texts"),
    [
        (["bank", "river", "water"], RIVER, [RIVER]),
        (["bank", "river", "bank"], None, ["bank", "river"]),
    ],
)
def test_a_text_that_several_phrases_need_is_encoded_once(
    phrases: list[str], context: str | None, texts: list[str]
) -> None:
    encoder = RecordingEncoder()
    vectors = query_vectors(encoder, phrases, context)
    assert encoder.texts == texts
    for phrase, vector in zip(phrases, vectors, strict=True):
        assert np.array_equal(vector, query_vector(encoder, phrase, context))


def test_a_context_without_the_phrase_is_refused_with_both(real_encoder: Encoder) -> None:
    message = r"'We sat on the bank .*' does not contain the phrase 'refund'"
    with pytest.raises(UsageError, match=message):
        query_vector(real_encoder, "refund", RIVER)


@pytest.mark.parametrize("context", [None, "", "   ", RIVER])
@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u200b"])
def test_a_blank_phrase_is_refused(real_encoder: Encoder, blank: str, context: str | None) -> None:
    with pytest.raises(UsageError, match=r"has no word|does not contain the phrase"):
        query_vector(real_encoder, blank, context)


def test_a_lone_surrogate_is_refused_by_name(real_encoder: Encoder) -> None:
    with pytest.raises(UsageError, match=r"U\+D83D"):
        query_vector(real_encoder, "half an emoji \ud83d")
    with pytest.raises(UsageError, match=r"U\+DE00"):
        best_spans(real_encoder, "refund", "half an emoji \ude00")


def test_a_phrase_is_like_itself(real_encoder: Encoder) -> None:
    assert similarity(real_encoder, "refund request", "refund request") == pytest.approx(
        1.0, abs=1e-5
    )
    assert similarity(real_encoder, "bank", "bank", RIVER, RIVER) == pytest.approx(1.0, abs=1e-5)


def test_similarity_is_symmetric(real_encoder: Encoder) -> None:
    forward = similarity(real_encoder, "a refund", "money back", None, "I want my money back.")
    backward = similarity(real_encoder, "money back", "a refund", "I want my money back.")
    assert forward == pytest.approx(backward, abs=1e-6)


def test_like_phrases_are_more_similar_than_others(real_encoder: Encoder) -> None:
    # .54 against .1 or so; the noise of int8 is .05 at most
    assert (
        similarity(real_encoder, "a refund", "money back")
        > similarity(real_encoder, "a refund", "opening hours") + 0.2
    )


def test_a_word_takes_the_sense_of_its_context(real_encoder: Encoder) -> None:
    def similarity_in_context(other_phrase: str, context: str) -> float:
        return similarity(real_encoder, "bank", other_phrase, context)

    assert similarity(real_encoder, "bank", "bank", RIVER, MONEY) < 0.9
    assert similarity_in_context("river shore", RIVER) > similarity_in_context("river shore", MONEY)
    assert similarity_in_context("financial institution", MONEY) > similarity_in_context(
        "financial institution", RIVER
    )


def test_the_public_similarity_takes_a_context_for_each_phrase(
    real_encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_DEVICE", "cpu")
    score = phrase_similarity("bank", "bank", context1=RIVER, context2=MONEY)
    assert score == pytest.approx(similarity(real_encoder, "bank", "bank", RIVER, MONEY), abs=1e-6)


@pytest.mark.parametrize(
    ("phrase_text", "expected"),
    [("refund request", "money back"), ("business hours", "hours"), ("a coat", "jacket")],
)
def test_the_best_span_says_what_was_asked_in_other_words(
    real_encoder: Encoder, phrase_text: str, expected: str
) -> None:
    (best,) = best_spans(real_encoder, phrase_text, TEXT)
    assert set(words_of(best.text)) & set(expected.split())


def words_of(text: str) -> list[str]:
    return [text[start:end] for start, end in words(text)]


def test_a_context_chooses_the_sense_that_is_found(real_encoder: Encoder) -> None:
    text = "They sat on the grassy bank by the water. Later they opened an account at the bank."
    assert best_spans(real_encoder, "bank", text, context=RIVER)[0].end == text.index(" by the")
    assert best_spans(real_encoder, "bank", text, context=MONEY)[0].end == text.rindex(".")


@pytest.mark.parametrize("k", [1, 2, 5, 1000])
def test_best_spans_do_not_overlap_and_the_best_is_first(real_encoder: Encoder, k: int) -> None:
    spans = best_spans(real_encoder, "refund request", TEXT, k)
    assert best_spans(real_encoder, "refund request", TEXT, 1) == spans[:1]
    assert 1 <= len(spans) <= k
    assert_true_offsets(spans, TEXT)
    assert all(first.cosine >= following.cosine for first, following in pairwise(spans))
    assert all(
        first.end <= second.start or second.end <= first.start
        for first, second in combinations(spans, 2)
    )


def test_more_spans_than_words_give_every_word_once(real_encoder: Encoder) -> None:
    spans = best_spans(real_encoder, "refund request", TEXT, 1000)
    covered = [
        word for span in sorted(spans, key=lambda item: item.start) for word in words_of(span.text)
    ]
    assert covered == words_of(TEXT)


def test_one_word_is_its_own_best_span(real_encoder: Encoder) -> None:
    (span,) = best_spans(real_encoder, "refund", "(Refund!)", 3)
    assert (span.start, span.end, span.text) == (1, 7, "Refund")


@pytest.mark.parametrize("text", ["", "   \n", "?! ...", "\u200b"])
def test_a_text_without_words_has_no_spans(real_encoder: Encoder, text: str) -> None:
    assert best_spans(real_encoder, "refund", text, 3) == []


@pytest.mark.parametrize("k", [0, -1])
def test_no_spans_cannot_be_asked_for(k: int) -> None:
    with pytest.raises(UsageError, match=f"k is {k}"):
        public_best_spans("refund", TEXT, k=k)


def long_text(calls: list[dict[str, Any]]) -> str:
    """400 words of the sample in one turn: more than a window, so that it is cut."""
    text = " ".join(turn["text"] for call in calls[:20] for turn in call["turns"])
    return text[: int(words(text)[399, 1])]


def brute_force(encoder: Encoder, query: Floats, text: str) -> dict[tuple[int, int], float]:
    """The cosine of every span of every piece, its mean vector built."""
    document = Document("", text, (Turn(text),))
    pieces = [part for passage in passages.split(document) for part in passage.parts]
    assert len(pieces) == 4  # 400 words in pieces of up to 131
    scores = {}
    for part, encoding in zip(
        pieces, encoder.encode([text[part.window_start : part.end] for part in pieces]), strict=True
    ):
        offsets = encoding.offsets + part.window_start
        for first in range(part.core):
            for start, end in (
                (part.words[first, 0], last) for last in part.words[first : first + 20, 1]
            ):
                inside = (offsets[:, 1] > start) & (offsets[:, 0] < end)
                scores[int(start), int(end)] = cosine(encoding.vectors[inside].mean(axis=0), query)
    return scores


@pytest.mark.parametrize("phrase_text", ["refund request", "speak to a manager", "opening hours"])
def test_the_best_span_of_a_long_turn_is_that_of_brute_force_over_its_pieces(
    real_encoder: Encoder, calls: list[dict[str, Any]], phrase_text: str
) -> None:
    text = long_text(calls)
    (best,) = best_spans(real_encoder, phrase_text, text)
    scores = brute_force(real_encoder, query_vector(real_encoder, phrase_text), text)
    # the last 19 words start 19, 18, ... 1 spans: 19 * 20 - 190
    assert len(scores) == 400 * 20 - 190
    assert_true_offsets([best], text)
    # Codes of 2 bits lose .1175 of the energy that a centroid leaves, at most .34 of a word's (it
    # explains .66 where words are new to it): a cosine is off by sqrt(.1175 * .34 / 287) = .0118
    # (standard deviation). The best of 7,810 is off by no more than four of these.
    rounding = 4 * 0.0118
    assert best.cosine == pytest.approx(scores[best.start, best.end], abs=rounding)
    assert scores[best.start, best.end] > max(scores.values()) - 2 * rounding


def test_the_public_best_spans_need_no_index() -> None:
    (span,) = public_best_spans("a coat", TEXT, k=1)
    assert TEXT[span.start : span.end] == span.text


def make_piece(*places: tuple[int, int, float]) -> PassageSpans:
    starts, ends, cosines = zip(*places, strict=True)
    return PassageSpans(
        np.array(cosines, np.float32), np.array(starts, np.int32), np.array(ends, np.int32)
    )


def test_the_best_places_are_chosen_over_all_pieces_and_do_not_overlap() -> None:
    first_piece, second_piece = (
        make_piece((0, 5, 0.5), (0, 3, 0.4)),
        make_piece((3, 8, 0.9), (8, 9, 0.1)),
    )
    # .9 takes 3..8 away from the first piece's .5, whose .4 then has room
    assert [
        (place.passage, place.start, place.end)
        for place in span_search.best_places([first_piece, second_piece], 3)
    ] == [(1, 3, 8), (0, 0, 3), (1, 8, 9)]
    assert [
        (place.start, place.end)
        for place in span_search.best_places([first_piece, second_piece], 1)
    ] == [(3, 8)]
    assert list(span_search.best_places([], 1)) == []
