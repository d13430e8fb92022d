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


def list_clause_ends(text: str, words: list[list[int]]) -> Iterator[bool]:
    """Yield for each gap between words whether a mark in it ends a clause.

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
        yield not is_inside and _ends_clause(text, start, end, following)


def _ends_clause(text: str, word: int, end: int, following: int) -> bool:
    """Return whether a clause ends in the gap behind the word that begins at `word`."""
    if following - end == 1 and text[end] == " ":
        return False
    if _LINE_BREAK.search(text, end, following):
        return True
    mark = _MARK.search(text, end, following)
    if not mark:
        return False
    gap = text[end:following]
    if not any(letter.isspace() for letter in gap):
        return not _joins(gap, text[end - 1], text[following])
    if gap.lstrip() == "." and gap[0] != ".":  # as in " .NET"
        return False
    is_period = _PERIOD.fullmatch(gap) is not None
    return not (is_period and _is_abbreviation(text[word:end], text[following]))


def _joins(gap: str, before: str, after: str) -> bool:
    """Return whether marks without a blank are within a token, as in "10:30" or "w...what"."""
    if before.isdigit() and after.isdigit():
        return True
    return set(gap) <= {".", "…"} or gap[0] in ".…" or "/" in gap or "@" in gap


def _is_abbreviation(word: str, following: str) -> bool:
    """Return whether a period behind a word, before a letter, is that of an abbreviation."""
    folded = word.lower().rstrip(".")
    if folded in _ALWAYS:
        return True
    if folded in _BEFORE_NUMBERS and following.isdigit():
        return True
    if len(word) == 1 and word.isupper() and word != "I":  # an initial
        return following.isupper()
    can_go_on = following.islower() or following.isdigit()
    return can_go_on and (folded in _OFTEN or _DOTTED.fullmatch(folded) is not None)
