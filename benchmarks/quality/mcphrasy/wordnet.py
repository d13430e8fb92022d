"""What of WordNet no model here was trained on: expressions that mean the same, and sentences that use a word in one of its senses.

``export.train`` learns from the two WordNet files of the training triples, all but a tenth of the words, cut by their first letters. That tenth is
read here, and of pairs of expressions only those that no other row teaches the other way round.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.quality.mcphrasy.contexts import Context
from benchmarks.quality.mcphrasy.files import there
from benchmarks.quality.tasks import rows

DEFINITIONS = "train_triples/wordnet_definitions.jsonl.gz"
EXAMPLES = "train_triples/wordnet_examples.jsonl.gz"
ORIGIN = "it is made of Open English WordNet (see train_triples/README.md); give --data, the folder of data sets"
ONE_IN, LETTERS = 10, 5
"""The cut of ``export.training.data.held_out``; a test compares the two."""

_INFLECTION = re.compile(r"(?<=...)(?:ing|ed|es|s|e|d)$")


def untrained(word: str) -> bool:
    """Whether a word is in the tenth that is never trained on."""
    digest = hashlib.sha256(word.lower()[:LETTERS].encode()).digest()
    return int.from_bytes(digest[:8], "big") % ONE_IN == 0


@dataclass(frozen=True, slots=True)
class Synonyms:
    """Two expressions of one meaning, which `definition` tells."""

    first: str
    second: str
    definition: str


def synonyms(data: Path) -> list[Synonyms]:
    """Pairs without a word in common, not even by its first letters, in the file's order. Raises SystemExit where the file is missing."""
    read = rows(there(data / DEFINITIONS, ORIGIN))
    found = [Synonyms(row["query"], *row["positive"].split(": ", 1)) for row in read if ": " in row["positive"]]
    taught = {(each.first, each.second) for each in found if not untrained(each.first)}
    kept = (each for each in found if untrained(each.first) and (each.second, each.first) not in taught)
    return [each for each in dict.fromkeys(kept) if not stems(each.first) & stems(each.second)]


def stems(phrase: str) -> set[str]:
    """The first letters of each word."""
    return {word[:LETTERS] for word in re.findall(r"\w+", phrase.lower())}


@dataclass(frozen=True, slots=True)
class Sense:
    """Sentences that use a word in one sense; `words` are its forms in them."""

    lemma: str
    definition: str
    words: tuple[str, ...]
    contexts: tuple[Context, ...]


def senses(data: Path) -> Iterator[list[Sense]]:
    """The senses of each word that has several, one of them with at least two sentences. Raises SystemExit where the file is missing."""
    held: dict[str, dict[str, dict[Context, str]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows(there(data / EXAMPLES, ORIGIN)):
        start, end = row.get("span", (0, 0))
        word = row["positive"][start:end].lower()
        if word and untrained(word):
            definition = row["query"].rsplit(": ", 1)[-1]  # a synonym may stand before it
            held[_INFLECTION.sub("", word)][definition][Context(row["positive"], start, end)] = word
    for lemma, found in held.items():
        made = [Sense(lemma, definition, tuple(used.values()), tuple(used)) for definition, used in found.items()]
        if len(made) > 1 and any(len(sense.contexts) > 1 for sense in made):
            yield made
