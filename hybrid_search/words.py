"""Words: the units that spans are made of.

A word is a segment between two Unicode word boundaries (UAX #29) that holds a letter, a digit or an emoji; each CJK ideograph is one.
"""

from __future__ import annotations

import numpy as np
import regex

from hybrid_search.types import Ints

_SEGMENT = regex.compile(r"\b.+?\b", flags=regex.WORD | regex.DOTALL | regex.V1)
_SPOKEN = regex.compile(r"[\p{L}\p{N}\p{Extended_Pictographic}]", flags=regex.V1)


def words(text: str, offset: int = 0) -> Ints:
    """Start and end of each word, int32 ``[words, 2]``, in code points; `offset` is added to all."""
    found = [match.span() for match in _SEGMENT.finditer(text) if _SPOKEN.search(match.group())]
    return np.array(found, dtype=np.int32).reshape(-1, 2) + np.int32(offset)


_TERM = regex.compile(r"[\p{L}\p{N}\p{M}\p{Co}]+", flags=regex.V1)


def query_terms(phrase: str) -> list[str]:
    """The distinct terms that a phrase is matched by in BM25, before stemming: runs of letters, marks and digits, case folded."""
    return list(dict.fromkeys(match.group().casefold() for match in _TERM.finditer(phrase)))
