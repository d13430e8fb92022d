"""Punctuation that ends a clause, as opposed to abbreviations, numbers and addresses.

A line break ends a clause. A mark inside a token, as in "10:30" or in an address, does not, nor
does the period of an abbreviation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from hybrid_search.text.words import MASK, make_word_set

_MARK = re.compile(r"[.,;:?!…—–。，、；：？！]|\s-\s")
LINE_BREAKS = r"\n\r\v\f\x85\u2028\u2029"
"""All line breaks, for use inside the brackets of a regular expression."""

LINE_BREAK = re.compile(f"[{LINE_BREAKS}]")
_PERIOD = re.compile(r"\.[\"'’”)\]]*\s+[\"'‘“(\[]*")
"""A gap with the period of the preceding word, and no other mark."""

_TOKEN = re.compile(
    r"(?:https?://|www\.)[^\s<>]+|[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)*|[A-Za-z]:\\[^\s<>|]+"
    rf"|{MASK}"
)
"""An address, or a placeholder such as ``<name>``."""

_TOKEN_SIGNS = ("://", "www.", "@", "<", "[", "{", ":\\")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,3}")

_ALWAYS = make_word_set("vs e.g i.e viz cf approx a.k.a p.o")
"""Abbreviations that never end a sentence, because something always follows."""

_TITLES = make_word_set("dr drs mr mrs ms mx prof messrs mme")
"""Abbreviations before a name."""

_TITLES_OR_WORDS = make_word_set("st rep gen sen gov rev capt cpt lt col sgt hon mt ft wm")
"""Abbreviations before a name that may also follow a name ('Baker St.') or end a sentence."""

_BEFORE_NUMBERS = make_word_set(
    "no nos nr vol p pp fig ch sec art ext apt rm tel jan feb mar apr jun jul aug sep sept oct "
    "nov dec ver v ste"
)
"""Abbreviations before a number; before anything else they are words at the end of a sentence."""

_OFTEN = make_word_set(
    "etc inc ltd co corp llc plc jr sr dept est min mins max hr hrs ave blvd rd bros al incl excl "
    "appt acct asst govt univ mon tue tues thu thur thurs fri a.m p.m am pm oz lb lbs ref ca st ft"
)
"""Abbreviations that may end a sentence: they do unless a lowercase letter or digit follows."""

_STARTERS = make_word_set(
    """
    a after all also an and any anyway are as at because before both but can could did do does
    each even every everybody everyone everything for from had has have he hello her here hi his
    how however i if in is it its just last let like many maybe most my never next no nobody none
    not nothing now of oh ok okay on once one only or our perhaps please she should since so some
    somebody someone something sorry still thank thanks that the their them then there these they
    this those though today tomorrow was we well were what when where which while who whose why
    will with would yes yesterday yet you your
    """
)
"""Words that start a sentence, rather than a name, after an abbreviation."""


def find_tokens(text: str) -> list[tuple[int, int]]:
    """Return start and end of each address and each placeholder."""
    if not any(sign in text for sign in _TOKEN_SIGNS):
        return []
    return [match.span() for match in _TOKEN.finditer(text)]


ENDS, OPEN, JOINS = 1, 0, -1
"""Kinds of gaps: a clause ends, no mark decides, and within a token."""


def classify_gaps(text: str, words: list[list[int]]) -> Iterator[int]:
    """Yield the kind of each gap between words.

    The parts of "10:30" or "well-known" are joined, and so are "Dr." and the name.

    Args:
        text: A text.
        words: Start and end of each of its words.
    """
    tokens = iter(find_tokens(text))
    token, before = next(tokens, None), slice(0, 0)
    for (start, end), (following, after) in pairwise(words):
        while token and token[1] <= end:
            token = next(tokens, None)
        if token is not None and token[0] <= start and following < token[1]:
            yield JOINS
        elif following - end == 1 and text[end] == " ":
            yield OPEN
        else:
            words_around = text[before], text[start:end], text[following:after]
            yield _classify_gap(text[end:following], *words_around)
        before = slice(start, end)


def _classify_gap(text: str, before: str, word: str, following: str) -> int:
    """Return the kind of a gap with this text; `before` is the word before its first word."""
    if LINE_BREAK.search(text):
        return ENDS
    has_mark = _MARK.search(text) is not None
    if text and not any(letter.isspace() for letter in text):
        return JOINS if not has_mark or _joins(text, word, following) else ENDS
    if not has_mark or (text.lstrip() == "." and text[0] != "."):  # as in " .NET"
        return OPEN
    return ENDS if _PERIOD.fullmatch(text) is None else _classify_period(before, word, following)


def _joins(text: str, word: str, following: str) -> bool:
    """Return whether marks without a blank join a token, as in "10:30" or "w...what"."""
    if word[-1].isdigit() and following[0].isdigit():
        return True
    return set(text) <= {".", "…"} or text[0] in ".…" or "/" in text or "@" in text


def _classify_period(before: str, word: str, following: str) -> int:
    """Return the kind of a gap that has the period of `word`."""
    lowered = word.lower().rstrip(".")
    if lowered in _ALWAYS or (lowered in _BEFORE_NUMBERS and following[0].isdigit()):
        return JOINS
    is_name = _may_be_name(following)
    is_initial = len(word) == 1 and word.isupper() and word != "I"
    if is_name and (is_initial or lowered in _TITLES or lowered in _TITLES_OR_WORDS):
        # 'at Baker St. London' ends with the street, 'by St. Mary' does not
        is_behind_name = lowered in _TITLES_OR_WORDS and before[:1].isupper()
        return OPEN if is_behind_name else JOINS
    if lowered in _TITLES:
        return ENDS if following[0].isupper() else JOINS
    is_dotted = _DOTTED.fullmatch(lowered) is not None
    if is_name and is_dotted:  # U.S. Government
        return OPEN
    can_go_on = following[0].islower() or following[0].isdigit()
    return OPEN if can_go_on and (is_dotted or lowered in _OFTEN) else ENDS


def _may_be_name(word: str) -> bool:
    """Return whether a word is capitalized and not a frequent first word of sentences."""
    return word[0].isupper() and re.split("['’]", word.lower())[0] not in _STARTERS
