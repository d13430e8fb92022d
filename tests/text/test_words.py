"""Words: segments between UAX #29 boundaries with letters, digits or emoji, in code points."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.text.words import MAX_WORD, contains_words, distinct_words, words

CASES = {
    "apostrophe": ("I can't stop", ["I", "can't", "stop"]),
    "curly apostrophe": ("it won’t start", ["it", "won’t", "start"]),
    "quotes": ("the 'big' dogs' \"house\"", ["the", "big", "dogs", "house"]),
    "opening apostrophe": ("said 'all of ’em'", ["said", "all", "of", "em"]),
    "elision": ("l’Avenue d'Iéna", ["l’Avenue", "d'Iéna"]),
    "decimal": ("about 3.14 or 1,000.50", ["about", "3.14", "or", "1,000.50"]),
    "time and money": ("10:30, $5 or 5%", ["10", "30", "5", "or", "5"]),
    "hyphen": ("e-mail", ["e", "mail"]),
    "abbreviation": ("the U.S.A. does.", ["the", "U.S.A", "does"]),
    "underscore": ("snake_case __init__", ["snake_case", "__init__"]),
    "ideographs": ("漢字と仮名", ["漢", "字", "と", "仮", "名"]),
    "ideograph outside the BMP": ("𠮷野家", ["𠮷", "野", "家"]),
    "katakana": ("カタカナです", ["カタカナ", "で", "す"]),
    "hangul": ("안녕하세요 세계", ["안녕하세요", "세계"]),
    "hebrew with marks of direction": ("\u200fשלום\u202c עולם", ["שלום\u202c", "עולם"]),
    "hebrew abbreviation": ("צה״ל", ["צה״ל"]),
    "combining marks": ("cafe\u0301 cre\u0300me", ["cafe\u0301", "cre\u0300me"]),
    "soft hyphen": ("co\u00adoperate", ["co\u00adoperate"]),
    "emoji": ("so 😀😀 yes", ["so", "😀", "😀", "yes"]),
    "emoji with joiners": (
        "my 👩\u200d👩\u200d👧\u200d👦 here",
        ["my", "👩\u200d👩\u200d👧\u200d👦", "here"],
    ),
    "emoji with a skin tone": ("ok 👍🏽!", ["ok", "👍🏽"]),
    "flags": ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
    "keycap": ("press 5\ufe0f\u20e3", ["press", "5\ufe0f\u20e3"]),
    "no-break space": ("10\u00a0km", ["10", "km"]),
    "narrow no-break space": ("«\u202foui\u202f» merci\u202f!", ["oui", "merci"]),
    "zero-width space": ("a\u200bb", ["a", "b"]),
    "byte order mark": ("\ufeffhello", ["hello"]),
    "lines": ("one\r\ntwo\n\nthree\tfour", ["one", "two", "three", "four"]),
    "punctuation alone": ("... !? -- () \u2026 \u00b7", []),
    "pictographs that are punctuation": ("what\u2049 no\u203c", ["what", "no"]),
    "spaces alone": (" \t\r\n\u00a0\u3000", []),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_words_are_those_of_uax_29(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in words(text)] == expected


def test_a_text_without_words_has_an_array_of_two_columns() -> None:
    bounds = words("?!")
    assert bounds.shape == (0, 2)
    assert bounds.dtype == np.int32


@settings(deadline=None, max_examples=300)
@given(st.text(max_size=40))
def test_every_letter_and_digit_is_in_one_word(text: str) -> None:
    word_counts = [0] * len(text)
    for start, end in words(text):
        for place in range(start, end):
            word_counts[place] += 1
    assert max(word_counts, default=0) <= 1
    assert all(
        count
        for letter, count in zip(text, word_counts, strict=True)
        if unicodedata.category(letter)[0] in "LN"
    )


@settings(deadline=None, max_examples=500)
@given(st.text(alphabet="ae1é私カ한😀👩 \n.,;:'’\"!?()-–…\u203c\u200b", max_size=30))
def test_no_word_begins_or_ends_with_punctuation(text: str) -> None:
    for start, end in words(text):
        assert not {
            unicodedata.category(text[start])[0],
            unicodedata.category(text[end - 1])[0],
        } & {"P", "Z", "C"}


def test_a_long_run_of_one_character_takes_no_longer_than_other_text() -> None:
    # A pattern that looks at the rest of the run from each of its characters would take hours.
    for run in ("'", "_", ".", "a", "\u0301", "a.", "🇩", "👩\u200d", "a\u0301"):
        is_word, length = run not in ("'", "_", ".", "\u0301"), 200_000 * len(run)
        expected = 100_000 if run == "🇩" else -(-length // MAX_WORD) * is_word
        assert len(words(run * 200_000 + " end")) == expected + 1


def test_a_long_word_is_cut_and_all_of_it_is_in_one_piece() -> None:
    text = "12.5," * 1000 + "12"
    bounds = words(f"log: {text} ok").tolist()
    pieces = [f"log: {text} ok"[start:end] for start, end in bounds]
    assert "".join(pieces[1:-1]) == text
    assert max(map(len, pieces)) == MAX_WORD


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("Refund REFUND refund", ["refund"]),
        ("can't e-mail", ["can", "t", "e", "mail"]),
        ("3.14", ["3", "14"]),
        ("?!", []),
        ("", []),
    ],
)
def test_distinct_words_are_runs_of_letters_and_digits(phrase: str, expected: list[str]) -> None:
    assert distinct_words(phrase) == expected


def test_words_of_a_phrase_stand_one_behind_the_other() -> None:
    assert contains_words("So: Money, back!", "money back")
    assert not contains_words("the money is back", "money back")
    assert not contains_words("moneyback", "money back")
    assert not contains_words("some money backs", "money back")
