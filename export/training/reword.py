"""Rewords texts: some words are replaced by a synonym or a definition of theirs.

The result need not be good English. A teacher tells what it means, and the student learns words
that hardly anybody says in the places of those that everybody does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random

from export.training.data import Corpus

SOURCE = "wordnet_definitions"
"""The corpus whose queries are expressions, and whose positives are synonyms and definitions."""

LONGEST = 8
"""Words of the longest definition that replaces a word."""

MOST = 3
"""Words that are replaced in one text, at most."""

_WORD = re.compile(r"[a-z]{4,}")
_ENDINGS = ("", "s", "es", "d", "ed", "ing")


class Rewording:
    """Replaces words by what a dictionary, one of `corpora` or none, says of them."""

    def __init__(self, corpora: Sequence[Corpus]) -> None:
        self._entries = _read_dictionary(corpora)

    def __call__(self, text: str, random: Random) -> str:
        """Return `text` with up to `MOST` words replaced; `text` itself if no word is known."""
        matches = [match for match in _WORD.finditer(text.lower()) if self._lookup(match.group())]
        chosen = random.sample(matches, min(len(matches), random.randint(1, MOST)))
        for match in sorted(chosen, key=lambda match: -match.start()):
            replacement = random.choice(self._lookup(match.group()))
            text = text[: match.start()] + replacement + text[match.end() :]
        return text

    def _lookup(self, word: str) -> Sequence[str]:
        """Return the replacements of `word`, or of the word that it is a form of."""
        stems = (word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending))
        return next((self._entries[stem] for stem in stems if stem in self._entries), ())


def _read_dictionary(corpora: Sequence[Corpus]) -> Mapping[str, Sequence[str]]:
    entries: dict[str, list[str]] = defaultdict(list)
    for triple in (row for corpus in corpora if corpus.name == SOURCE for row in corpus.triples):
        synonym, colon, definition = triple.positive.partition(": ")
        if colon:
            entries[triple.query.lower()].append(synonym)
            entries[synonym.lower()].append(triple.query)
        meaning = (definition if colon else synonym).split(";")[0]
        if len(meaning.split()) <= LONGEST:
            entries[triple.query.lower()].append(meaning)
    return entries
