"""Recognise small talk: pleasantries, names, numbers and codes, which every call has.

A clause is a pleasantry if its vector is near to one of a few. It gives details if it is near to
"my name is" or "this is John" and the like, if many of its words are numbers, codes, addresses or
names, or if it has no other words than details, thanks, and words that go with them.

A detail is a number, a code, an address or a name, with the words that introduce it, as "my card
number is 5197". The words are looked at in lower case, since recognisers write no capitals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from hybrid_search.encoder.base import Encoder
from hybrid_search.search.phrase_vector import query_vectors
from hybrid_search.text.types import Floats
from hybrid_search.text.words import make_word_set

PLEASANTRIES = (
    "thank you so much",
    "thanks for your help",
    "you are welcome",
    "have a nice day",
    "have a good evening",
    "good morning",
    "hello how are you",
    "nice to meet you",
    "goodbye take care",
    "thank you for calling how may I help you",
    "is there anything else I can help you with",
    "no thank you",
    "no that is all",
    "are you there",
    "yes that is right",
    "okay that sounds good",
    "please wait a moment",
    "I am sorry about that",
)
DETAILS = (
    "my name is",
    "my phone number is",
    "my account number is",
    "my ssn is",
    "my email address is",
    "my address is",
    "my date of birth is",
    "my password is",
)
NAMES = ("this is John", "it is Mary Miller")

NEAR_PLEASANTRY, NEAR_DETAIL, NEAR_NAME = 0.6, 0.55, 0.45
"""Cosines from which a clause is one of these.

Chosen with calls_sgd: in turns that state an intent, only thanks are left out.
"""

LEAST_DETAIL_WORDS = 0.3
"""The share of its words from which a clause gives details: 'card no 5197', not 'I want 2 beers'.

Of the clauses in turns of calls_sgd that state an intent 4 of 1,000 have so many.
"""

_DETAIL = re.compile(r"\S*[\d@]\S*|[b-hj-zB-HJ-Z]\W*|[A-Z][a-z]+\W*")
"""A number, a code, an address; a letter that is spelled; a name, unless the clause begins so."""


def encode_formulas(encoder: Encoder) -> Callable[[Floats], NDArray[np.bool_]]:
    """Return a function that tells which clauses are near to one of these phrases.

    It takes their vectors, float32 ``[n, dimension]``, and returns bool ``[n]``.
    """
    kinds = {PLEASANTRIES: NEAR_PLEASANTRY, DETAILS: NEAR_DETAIL, NAMES: NEAR_NAME}
    phrases = np.stack(query_vectors(encoder, [phrase for group in kinds for phrase in group]))
    limits = np.repeat(list(kinds.values()), list(map(len, kinds))).astype(np.float32)
    return lambda vectors: np.any(vectors @ phrases.T >= limits, axis=1)


def is_small_talk(text: str) -> bool:
    """Return whether a clause gives details, or has no content."""
    return is_detail(text) or not has_content(text)


def is_detail(text: str) -> bool:
    """Return whether many words of a clause are numbers, codes, addresses or names.

    >>> [is_detail("789 745 2525"), is_detail("I need 2 red vine pizzas")]
    [True, False]
    """
    first, *rest = join_codes(text).split() or [""]
    # a word in capitals is a name only where others are not
    words = [first[:1].lower() + first[1:], *rest]
    return sum(map(_is_detail_word, words)) >= LEAST_DETAIL_WORDS * len(words)


def _is_detail_word(word: str) -> bool:
    return _DETAIL.fullmatch(word) is not None


FILLERS = make_word_set(
    """
    a an the and or so as well of for to in on at by with from here there then now
    i im me my mine you u ur your yours we us our he she they it its this that thats these ones one
    is ia are am was were be been will would can could shall may do does did done have has had
    yes ya yah yeah yep yup no nope nah ok okay okey k sure fine good great nice perfect right
    correct alright enough oh ah hi hello hey sir madam maam dear please sorry of course
    nothing else other all over side very much really just also too
    """
)
"""Words without content: a clause of nothing else asks for nothing."""

QUALIFIERS = make_word_set(
    """
    account booking card city company confirmation contact credit customer debit first full last
    member middle mobile order passport phone policy reference second security social ticket user
    """
)
"""Words that say whose detail or which: content, unless the clause gives one."""

INTRODUCERS = make_word_set("date birth dob digits ends ending expiry no number num")
"""Words that a number or code follows, as a rule."""

NAME_INTRODUCERS = make_word_set("name names mr mrs ms surname")
VALUE_INTRODUCERS = make_word_set(
    """
    address city code email id mail number otp passcode password pin ssn state street username zip
    zipcode
    """
)
"""Words that other words may follow, if the clause has a number too: 'city ko zip 458999'."""

CHANGES = make_word_set(
    """
    change changed correct correction expired forgot forgotten incorrect misspelled missing not
    reset update updated wrong
    """
)
"""Words for a wish about a detail: they are no names."""

DELIVERIES = make_word_set("another different give mail send use using write")
"""Words around an address that something goes to: 'send me another mail id'."""

MOST_NAMES = 3
"""The longest name: 'my name is Mary Ann Smith'."""

_ALL_INTRODUCERS = INTRODUCERS | NAME_INTRODUCERS | VALUE_INTRODUCERS
_SIGNS = NAME_INTRODUCERS | {"number"}
_LINKS = make_word_set("is ia was as s")
_OBJECTS = make_word_set("a an it my the this that your")
_KNOWN = FILLERS | QUALIFIERS | _ALL_INTRODUCERS | CHANGES
_MAIL = re.compile(r"\S*(?:@|mailcom|yahoocom)\S*|(?!telecom|intercom|sitcom)\S{4,}com")
_VALUE = re.compile(rf"\S*\d\S*|[b-hj-z]|{_MAIL.pattern}")
_THANKS = re.compile(
    r"\b(?:thx|(?:thats|tats|that is) all)\b"
    r"|\S*(?:thank|tahnk|thaks|thanx)\S*(?: (?:you|u|a|lot|so|very|much))*"
    r"(?: for (?:all )?(?:your|the|this|that) \w+)?"
    r"|\b(?:have|enjoy|wish)(?: (?:you|a|an|the|your|very|good|nice|great|wonderful|lovely))*"
    r" (?:day|evening|night|weekend)\b"
    r"|\b(?:good ?bye|bye|youre welcome|you are welcome)\b"
    r"|\bappreciate(?: (?:your|the|all|it|help))*\b"
)


_CODE = re.compile(r"\b([a-z]{1,3}) (\d{3,})\b|\b(\d{3,}) ([a-z]{1,3})\b", re.IGNORECASE)
"""A code in two words, 'asa 852' or '125 dfc', unless its letters are a word or a unit."""

_UNITS = make_word_set(
    "am cm eur gb gbp h hr hrs kb kg km lb lbs m mb min mm mph nd oz pm rd st tb th usd"
)


def join_codes(text: str) -> str:
    """Return a clause with the letters and the digits of each code as one word.

    >>> join_codes("my booking no is asa 852")
    'my booking no is asa852'
    """
    return _CODE.sub(_join_code, text)


def _join_code(match: re.Match[str]) -> str:
    first, second = (part for part in match.groups() if part)
    is_word = bool({first.lower(), second.lower()} & (_KNOWN | _UNITS))
    return match[0] if is_word else first + second


def has_content(text: str) -> bool:
    """Return whether a clause says more than details, thanks, farewells and assent.

    >>> [has_content("my card number is 5197"), has_content("my card is lost")]
    [False, True]
    """
    bare = (word.strip(".,;:!?'\"()").replace("'", "") for word in text.lower().split())
    clean = join_codes(" ".join(bare))
    words = _THANKS.sub(" ", clean).split()
    has_value = any(map(_VALUE.fullmatch, words))
    left = list(_list_content(words, has_value=has_value))
    if len(left) == 1 and not has_value and _THANKS.search(clean):  # thank you, Spencer
        return _has_object(left[0], words)
    return bool(left)


def _list_content(words: list[str], *, has_value: bool) -> Iterator[str]:
    """Yield the words that are neither details nor introduce them."""
    without_content = FILLERS
    if has_value or not _SIGNS.isdisjoint(words):
        without_content |= QUALIFIERS | _ALL_INTRODUCERS
    if any(map(_MAIL.fullmatch, words)):
        without_content |= DELIVERIES
    introducers = NAME_INTRODUCERS | VALUE_INTRODUCERS if has_value else NAME_INTRODUCERS
    named = {place for start in _find_starts(words, introducers) for place in _names(words, start)}
    for place, word in enumerate(words):
        if _MAIL.fullmatch(word):  # its words come before: karan prabu 03 gmailcom
            named.update(place - 1 - back for back in _names(words[:place][::-1], 0))
    for place, word in enumerate(words):
        if place not in named and word not in without_content and not _VALUE.fullmatch(word):
            yield word


def _find_starts(words: list[str], introducers: frozenset[str]) -> Iterator[int]:
    """Yield the places after an introducer and its 'is'."""
    for start, word in enumerate(words, start=1):
        if word in introducers:
            is_linked = start < len(words) and words[start] in _LINKS
            yield start + is_linked


def _names(words: list[str], start: int) -> Iterable[int]:
    """Return the places from a start on of words that may be a name."""
    places = range(start, min(start + MOST_NAMES, len(words)))
    return takewhile(lambda place: words[place] not in _KNOWN, places)


def _has_object(word: str, words: list[str]) -> bool:
    """Return whether a word is followed as a verb is: 'cancel it'."""
    following = words[words.index(word) + 1 :]
    return bool(following) and following[0] in _OBJECTS
