"""Recognise small talk: pleasantries, names, numbers and codes, which every call has.

A clause is a pleasantry if its vector is near to one of a few. It gives details if it is near to
"my name is" or "this is John" and the like, if many of its words are numbers, codes, addresses or
names, or if nothing else remains (`clause_content`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_search.discover.clause_content import has_content, join_codes
from hybrid_search.encoder.base import Encoder
from hybrid_search.search.phrase_vector import query_vectors
from hybrid_search.text.types import Floats

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


@dataclass(frozen=True, slots=True, eq=False)
class SmallTalk:
    """Vectors of phrases of three kinds, each float32 ``[phrases, dimension]``.

    >>> [is_detail("789 745 2525"), is_detail("I need 2 red vine pizzas")]
    [True, False]
    """

    pleasantries: Floats
    details: Floats
    names: Floats

    @classmethod
    def load(cls, encoder: Encoder) -> SmallTalk:
        """Return the phrases, encoded."""
        kinds = (PLEASANTRIES, DETAILS, NAMES)
        return cls(*(np.stack(query_vectors(encoder, phrases)) for phrases in kinds))

    def find(self, vectors: Floats) -> NDArray[np.bool_]:
        """Return which of these clauses are near to one of the phrases, bool ``[n]``."""
        near = np.zeros(len(vectors), np.bool_)
        for phrases, least in (
            (self.pleasantries, NEAR_PLEASANTRY),
            (self.details, NEAR_DETAIL),
            (self.names, NEAR_NAME),
        ):
            near |= (vectors @ phrases.T).max(axis=1) >= least
        return near


def is_small_talk(text: str) -> bool:
    """Return whether a clause gives details, or has no content."""
    return is_detail(text) or not has_content(text)


def is_detail(text: str) -> bool:
    """Return whether many words of a clause are numbers, codes, addresses or names."""
    first, *rest = join_codes(text).split() or [""]
    # a word in capitals is a name only where others are not
    words = [first[:1].lower() + first[1:], *rest]
    return sum(map(_is_detail_word, words)) >= LEAST_DETAIL_WORDS * len(words)


def _is_detail_word(word: str) -> bool:
    return _DETAIL.fullmatch(word) is not None
