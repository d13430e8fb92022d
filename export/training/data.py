"""Triples, drawn by the weight of their file.

The draw of a step depends on the seed and the step's number alone, so a run can go on anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

from hybrid_search.text.types import Ints
from hybrid_search.text.words import distinct_words, words

HELD_OUT = 10
"""One example in this many is never trained on, but measured on."""


@dataclass(frozen=True, slots=True)
class Triple:
    """A query, a passage that answers it, one that does not.

    `span` are the characters of the positive that answer, if they are known, and `core` the fewest
    of them that a person would mark. Passages of the same `domain` and another intent may answer,
    unless they are of the same `group`: its intents were written to differ.
    """

    query: str
    positive: str
    negative: str
    span: tuple[int, int] | None = None
    intent: str | None = None
    core: tuple[int, int] | None = None
    domain: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """The triples of one file; `digest` is the SHA-256 of its bytes.

    `english` are the English sentences of those in another language, if its rows are parallel.
    """

    name: str
    digest: str
    triples: Sequence[Triple]
    held_out: int
    english: Mapping[str, str] = field(default_factory=dict)


class Sampler:
    """Draws triples: a file by its weight, then a row, all rows alike.

    `weights` maps names to weights; files that it lacks have the weight of all others.
    """

    def __init__(
        self, corpora: Sequence[Corpus], weights: Mapping[str, float], default_weight: float
    ) -> None:
        unknown = sorted(set(weights) - {corpus.name for corpus in corpora})
        if unknown:
            raise SystemExit(
                f"the recipe has weights for {', '.join(unknown)}, but no --triples "
                "file has this name"
            )
        self.corpora = [
            corpus for corpus in corpora if weights.get(corpus.name, default_weight) > 0
        ]
        self._by_intent = [_group_by_intent(corpus.triples) for corpus in self.corpora]
        self._intents = [_list_intents(corpus.triples) for corpus in self.corpora]
        self._upto = list(
            accumulate(weights.get(corpus.name, default_weight) for corpus in self.corpora)
        )
        if not self.corpora:
            raise SystemExit("every file of triples has weight 0 in the recipe")

    def draw(self, random: Random) -> Triple:
        """Return one triple."""
        return random.choice(self.corpora[self._corpus(random)].triples)

    def batch(
        self, random: Random, count: int, alike: float, together: int = 1, sisters: int = 0
    ) -> list[Triple]:
        """Return `count` triples, with the probability `alike` all of one file.

        That makes them harder negatives of each other, and so do `sisters` other intents of its
        group beside an intent that is drawn. Of each intent there are `together` triples.
        """
        is_alike = random.random() < alike
        number = self._corpus(random)
        triples: list[Triple] = []
        while len(triples) < count:
            number = number if is_alike else self._corpus(random)
            triple = random.choice(self.corpora[number].triples)
            triples += self._draw_fellows(random, number, triple, together)
            for intent in self._draw_sisters(random, number, triple, sisters):
                sister = random.choice(self._by_intent[number][intent])
                triples += self._draw_fellows(random, number, sister, together)
        return triples[:count]

    def _draw_fellows(
        self, random: Random, number: int, triple: Triple, together: int
    ) -> list[Triple]:
        """Return a triple and others of its intent."""
        siblings = self._by_intent[number].get(triple.intent, [triple])
        return [triple, *random.sample(siblings, min(together - 1, len(siblings)))]

    def _draw_sisters(self, random: Random, number: int, triple: Triple, count: int) -> list[str]:
        """Return other intents of a triple's group."""
        if triple.group is None or not count:
            return []
        intents = self._intents[number][triple.group]
        others = [intent for intent in intents if intent != triple.intent]
        return random.sample(others, min(count, len(others)))

    def _corpus(self, random: Random) -> int:
        return random.choices(range(len(self.corpora)), cum_weights=self._upto)[0]


def _group_by_intent(triples: Sequence[Triple]) -> dict[str | None, list[Triple]]:
    groups: dict[str | None, list[Triple]] = {}
    for triple in triples:
        if triple.intent is not None:
            groups.setdefault(triple.intent, []).append(triple)
    return groups


def _list_intents(triples: Sequence[Triple]) -> dict[str, list[str]]:
    """Return the intents of each group, in the order of the triples."""
    intents: dict[str, dict[str, None]] = {}
    for triple in triples:
        if triple.group is not None and triple.intent is not None:
            intents.setdefault(triple.group, {})[triple.intent] = None
    return {group: list(names) for group, names in intents.items()}


@dataclass(frozen=True, slots=True)
class PassageWindow:
    """The part of a passage that is read, and the characters that carry the meaning, if known."""

    text: str
    span: tuple[int, int] | None = None
    core: tuple[int, int] | None = None


WINDOW_WORDS = 75
"""The words of most texts that fit into 112 tokens.

A longer passage is cut to the part nearest to its query.
"""

_EDGE = re.compile(r"(?<=[.!?])[\"')\]]*\s+")


def positive(triple: Triple) -> PassageWindow:
    """Return the positive, cut around its span, or to the part that shares most query terms."""
    word_offsets = words(triple.positive)
    if len(word_offsets) <= WINDOW_WORDS:
        return PassageWindow(triple.positive, triple.span, triple.core)
    if triple.span is None:
        return PassageWindow(_nearest(triple.query, triple.positive, word_offsets))
    first, last = triple.span
    places = enumerate(word_offsets.tolist())
    inside = [i for i, (start, end) in places if end > first and start < last] or [0]
    spare = max(0, WINDOW_WORDS - len(inside)) // 2
    first = max(0, min(inside[0] - spare, len(word_offsets) - WINDOW_WORDS))
    start, end = (
        int(word_offsets[first, 0]),
        int(word_offsets[min(first + WINDOW_WORDS, len(word_offsets)) - 1, 1]),
    )
    return PassageWindow(
        triple.positive[start:end],
        _shift(triple.span, start, end),
        _shift(triple.core, start, end) if triple.core else None,
    )


def _shift(span: tuple[int, int], start: int, end: int) -> tuple[int, int]:
    """Return a span in the window from `start` to `end`, cut at its end."""
    return span[0] - start, min(span[1], end) - start


def negative(triple: Triple) -> PassageWindow:
    """Return the negative, cut to the part that shares most query terms: the hardest one."""
    word_offsets = words(triple.negative)
    return PassageWindow(
        triple.negative
        if len(word_offsets) <= WINDOW_WORDS
        else _nearest(triple.query, triple.negative, word_offsets)
    )


def _nearest(query: str, text: str, word_offsets: Ints) -> str:
    """Return the window of whole words, beginning with a sentence, with most of the query's terms.

    Among equal ones the first.
    """
    query_words = set(distinct_words(query))
    edges = {0, *(match.end() for match in _EDGE.finditer(text))}
    spans = word_offsets.tolist()
    firsts = [i for i, (start, _) in enumerate(spans) if start in edges] or [0]
    windows = (spans[first : first + WINDOW_WORDS] for first in firsts)
    texts = [text[window[0][0] : window[-1][1]] for window in windows]
    return max(texts, key=lambda window_text: len(query_words & set(distinct_words(window_text))))


def sentences(text: str) -> list[str]:
    """Return the sentences of `text`, cut behind full stops, exclamation and question marks."""
    return [sentence for sentence in _EDGE.split(text) if sentence.strip()]
