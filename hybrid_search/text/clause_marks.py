"""Tell the punctuation that ends a clause from that of abbreviations, numbers and addresses.

A line break ends a clause. A mark between two characters of one token, as in "10:30" or in an
address, ends none, nor does the period of an abbreviation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

_MARK = re.compile(r"[.,;:?!…—–。，、；：？！]|\s-\s")
_LINE_BREAK = re.compile(r"[\n\r\v\f\x85\u2028\u2029]")
_PERIOD = re.compile(r"\.[\"'’”)\]]*\s+[\"'‘“(\[]*")
"""A gap with the period of the word before it, and no other mark."""

_TOKEN = re.compile(
    r"(?:https?://|www\.)[^\s<>]+|[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)*"
    r"|<[^<>\s]{1,40}>|\[[^\[\]\s]{1,40}\]|\{[^{}\s]{1,40}\}"
)
"""An address, or a word that stands for others, such as <name> or [PHONE]."""

_TOKEN_SIGNS = ("://", "www.", "@", "<", "[", "{")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")

_ALWAYS_TEXT = (
    "dr mr mrs ms mx prof rev st gen sen rep capt cpt lt col sgt hon mt ft messrs mme vs e.g i.e "
    "viz cf ca approx"
)
_ALWAYS = frozenset(_ALWAYS_TEXT.split())
"""Abbreviations that end no sentence, as something always follows."""

_BEFORE_NUMBERS_TEXT = (
    "no nos nr vol p pp fig ch sec art ext apt rm tel jan feb mar apr jun jul aug sep sept oct "
    "nov dec ver v"
)
_BEFORE_NUMBERS = frozenset(_BEFORE_NUMBERS_TEXT.split())
"""Abbreviations before a number; before anything else they are words that end a sentence."""

_OFTEN_TEXT = (
    "etc inc ltd co corp llc plc jr sr dept est min mins max hr hrs ave blvd rd bros al incl excl "
    "appt acct asst govt univ mon tue tues thu thur thurs fri a.m p.m am pm"
)
_OFTEN = frozenset(_OFTEN_TEXT.split())
"""Abbreviations that may end a sentence: that is so if no small letter follows."""


def find_tokens(text: str) -> list[tuple[int, int]]:
    """Return start and end of each address and of each word that stands for others."""
    if not any(sign in text for sign in _TOKEN_SIGNS):
        return []
    return [match.span() for match in _TOKEN.finditer(text)]


ENDS, OPEN, JOINS = 1, 0, -1
"""Kinds of gaps: with the end of a clause, without a mark that tells, and within a token."""


def classify_gaps(text: str, words: list[list[int]]) -> Iterator[int]:
    """Yield the kind of each gap between words.

    The two parts of "10:30" or of "well-known" are joined, and so are "Dr." and the name.

    Args:
        text: A text.
        words: Start and end of each of its words.
    """
    tokens = iter(find_tokens(text))
    token = next(tokens, None)
    for (start, end), (following, _) in pairwise(words):
        while token and token[1] <= end:
            token = next(tokens, None)
        is_inside = token is not None and token[0] <= start and following < token[1]
        yield JOINS if is_inside else _classify_gap(text, start, end, following)


def _classify_gap(text: str, word: int, end: int, following: int) -> int:
    """Return the kind of the gap behind the word that begins at `word`."""
    if following - end == 1 and text[end] == " ":
        return OPEN
    if _LINE_BREAK.search(text, end, following):
        return ENDS
    has_mark = _MARK.search(text, end, following) is not None
    gap = text[end:following]
    if gap and not any(letter.isspace() for letter in gap):
        return JOINS if not has_mark or _joins(gap, text[end - 1], text[following]) else ENDS
    if not has_mark or (gap.lstrip() == "." and gap[0] != "."):  # as in " .NET"
        return OPEN
    if _PERIOD.fullmatch(gap) is None:
        return ENDS
    return _classify_period(text[word:end], text[following])


def _joins(gap: str, before: str, after: str) -> bool:
    """Return whether marks without a blank are within a token, as in "10:30" or "w...what"."""
    if before.isdigit() and after.isdigit():
        return True
    return set(gap) <= {".", "…"} or gap[0] in ".…" or "/" in gap or "@" in gap


def _classify_period(word: str, following: str) -> int:
    """Return the kind of the gap with the period of a word, before a letter."""
    folded = word.lower().rstrip(".")
    if folded in _ALWAYS or (folded in _BEFORE_NUMBERS and following.isdigit()):
        return JOINS
    if len(word) == 1 and word.isupper() and word != "I":  # an initial
        return JOINS if following.isupper() else ENDS
    can_go_on = following.islower() or following.isdigit()
    is_abbreviation = folded in _OFTEN or _DOTTED.fullmatch(folded) is not None
    return OPEN if can_go_on and is_abbreviation else ENDS
