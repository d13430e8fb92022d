"""Terms: what BM25 counts of a text, as Lucene's English analyzer cuts it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.text.stems import STOP_WORDS, find_matches, join_terms, query_terms
from hybrid_search.text.words import words

CASES = {
    "case": ("My CARD", ["my", "card"]),
    "stop words": ("The card is not in the post", ["card", "post"]),
    "only stop words": ("To be, or not to be", []),
    "possessives": ("Tom's and the dogs' and James’s", ["tom", "dogs", "james"]),
    "a stop word with an apostrophe": ("it's that's", []),
    "contractions are whole": ("can't won’t", ["can't", "won't"]),
    "numbers are whole": ("3.50 or 1,000", ["3.50", "1,000"]),
    "a word twice": ("card card", ["card", "card"]),
    "letters without an accent to take off": ("Straße Søren Łódź", ["strasse", "soren", "lódź"]),
    "ligatures and full width": ("oﬃce ﬁne ＦＵＬＬ １２", ["office", "fine", "full", "12"]),
    "what is not seen": (
        "\u200fשלום\u202c co\u00adoperate 1\ufe0f\u20e3",
        ["שלום", "cooperate", "1"],
    ),
    "nothing": ("?!", []),
}


@pytest.mark.parametrize("name", CASES)
def test_terms(name: str) -> None:
    phrase, expected = CASES[name]
    assert query_terms(phrase) == expected
    assert join_terms(phrase, words(phrase)) == " ".join(expected)


def test_there_are_lucenes_33_stop_words() -> None:
    assert len(STOP_WORDS) == 33


def test_the_words_of_terms_are_found_where_they_stand() -> None:
    text = "Tom’s card, the CARD and a cart"
    bounds = find_matches(text, "cards of Tom")
    assert [text[start:end] for start, end in bounds] == ["Tom’s", "card", "CARD"]


@settings(deadline=None, max_examples=300)
@given(st.text(alphabet="ae1é私カ한😀 \n.,'’s\"\u200b\u202f\u00a0\u3000", max_size=30))
def test_a_blank_stands_only_between_two_terms(text: str) -> None:
    joined = join_terms(text, words(text))
    assert joined.split() == query_terms(text)
    assert joined.split(" ") == (query_terms(text) or [""])
