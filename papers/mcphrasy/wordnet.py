"""The part of WordNet that no model here was trained on.

Expressions that mean the same, and sentences that use a word in one of its senses. ``export.train``
learns from the two WordNet files of the training triples, all but a tenth of the words, cut by
their first letters. That tenth is read here, and of pairs of expressions only those that no other
row teaches the other way round.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.quality.tasks import rows
from papers.mcphrasy.contexts import Context
from papers.mcphrasy.files import require_file

DEFINITIONS = "train_triples/wordnet_definitions.jsonl.gz"
EXAMPLES = "train_triples/wordnet_examples.jsonl.gz"
ORIGIN = (
    "it is made of Open English WordNet (see train_triples/README.md);"
    " give --data, the folder of data sets"
)
ONE_IN, LETTERS = 10, 5
"""The cut of ``export.training.corpora.held_out``; a test compares the two."""

_INFLECTION = re.compile(r"(?<=...)(?:ing|ed|es|s|e|d)$")


def is_untrained(word: str) -> bool:
    """Tell whether a word is in the tenth that is never trained on."""
    digest = hashlib.sha256(word.lower()[:LETTERS].encode()).digest()
    return int.from_bytes(digest[:8], "big") % ONE_IN == 0


@dataclass(frozen=True, slots=True)
class Synonyms:
    """Two expressions of one meaning, which `definition` explains."""

    first: str
    second: str
    definition: str


def synonyms(data: Path) -> list[Synonyms]:
    """Return pairs without a common word, not even by its first letters, in the file's order.

    Raises SystemExit if the file is missing.
    """
    read = rows(require_file(data / DEFINITIONS, ORIGIN))
    pairs = [
        Synonyms(row["query"], *row["positive"].split(": ", 1))
        for row in read
        if ": " in row["positive"]
    ]
    taught = {(pair.first, pair.second) for pair in pairs if not is_untrained(pair.first)}
    untrained_pairs = (
        pair
        for pair in pairs
        if is_untrained(pair.first) and (pair.second, pair.first) not in taught
    )
    return [
        pair
        for pair in dict.fromkeys(untrained_pairs)
        if not stems(pair.first) & stems(pair.second)
    ]


def stems(phrase: str) -> set[str]:
    """Return the first letters of each word."""
    return {word[:LETTERS] for word in re.findall(r"\w+", phrase.lower())}


@dataclass(frozen=True, slots=True)
class Sense:
    """Sentences that use a word in one sense; `words` are its forms in them."""

    lemma: str
    definition: str
    words: tuple[str, ...]
    contexts: tuple[Context, ...]


def senses(data: Path) -> Iterator[list[Sense]]:
    """Yield the senses of each word that has several, one of them with at least two sentences.

    Raises SystemExit if the file is missing.
    """
    examples: dict[str, dict[str, dict[Context, str]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows(require_file(data / EXAMPLES, ORIGIN)):
        start, end = row.get("span", (0, 0))
        word = row["positive"][start:end].lower()
        if word and is_untrained(word):
            definition = row["query"].rsplit(": ", 1)[-1]  # a synonym may precede it
            examples[_INFLECTION.sub("", word)][definition][
                Context(row["positive"], start, end)
            ] = word
    for lemma, contexts_by_definition in examples.items():
        word_senses = [
            Sense(lemma, definition, tuple(used.values()), tuple(used))
            for definition, used in contexts_by_definition.items()
        ]
        if len(word_senses) > 1 and any(len(sense.contexts) > 1 for sense in word_senses):
            yield word_senses
