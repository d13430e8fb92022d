"""Find thousands of phrases in a text at once: they form a tree of words that is followed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_END = ""
"""The key in a tree's node for the phrases that end there; no word is empty."""


def find_words(text: str) -> list[re.Match[str]]:
    """Return the words of a text with their places; of punctuation they have apostrophes alone."""
    return list(_WORD.finditer(text))


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without their places."""
    return [word.group().lower() for word in find_words(text)]


def normalize(text: str) -> str:
    """Return the words of a text in lower case, with one blank between them.

    Two wordings for which it is the same differ in case, punctuation and blanks alone.
    """
    return " ".join(split_words(text))


class WordTree:
    """A node for each word, its children the words that follow it in some phrase.

    Phrases of the same words share an end; a phrase without a word is not in the tree.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        self._root: dict[str, Any] = {}
        for phrase in dict.fromkeys(phrases):
            node = self._root
            for word in split_words(phrase):
                node = node.setdefault(word, {})
            if node is not self._root:
                node.setdefault(_END, []).append(phrase)

    def find(self, words: Sequence[re.Match[str]]) -> Iterator[tuple[list[str], int, int]]:
        """Yield the phrases at each place, with the numbers of their first and last word.

        Phrases inside others are among them.
        """
        for first in range(len(words)):
            node = self._root
            for last in range(first, len(words)):
                node = node.get(words[last].group().lower(), {})
                if not node:
                    break
                if _END in node:
                    yield node[_END], first, last
