"""Texts as speech recognisers write them: words in lower case, with blanks between them."""

from __future__ import annotations

from hybrid_search.text.types import Ints


def spell_words(text: str, bounds: Ints) -> list[str]:
    """Return the words of a text as recognisers spell them.

    Args:
        text: A text.
        bounds: Start and end of each of its words, int32 ``[words, 2]``.
    """
    return [text[start:end].lower() for start, end in bounds.tolist()]
