"""Which of five means the same, from WordNet: questions of Turney's form for the data at hand, on expressions that are not trained on.

An expression, one that means the same and shares no word with it, and four that mean the same as others. Only expressions that the corpora hold often
enough are asked for, so that it is similarities that are compared; the share of the others is said. Wrong choices are drawn at random, while
many of Turney's are near the right one: figures here are higher than there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.quality.mcphrasy import corpora
from benchmarks.quality.mcphrasy.choice import Question, score
from benchmarks.quality.mcphrasy.contexts import search
from benchmarks.quality.mcphrasy.wordnet import Synonyms, stems, synonyms
from benchmarks.quality.systems.base import System

LEAST = 10
"""Contexts that an expression must have."""

LETTERS = 2
"""Expressions of so few are symbols, most of them: "A" for adenine."""

WRONG = 4
SEED = 3


def measure(system: System, data: Path) -> dict[str, Any]:
    """Accuracy, and how many of all pairs the corpora hold."""
    every, pairs = here(data)
    return {"pairs": len(every), "pairs held": len(pairs), **score(system, questions(pairs))}


@lru_cache(maxsize=1)
def here(data: Path) -> tuple[list[Synonyms], list[Synonyms]]:
    """All pairs, and those that the corpora hold; looked for once for all systems."""
    every = synonyms(data)
    return every, held(every, corpora.read(data))


def held(pairs: Sequence[Synonyms], sentences: Iterable[str], least: int = LEAST) -> list[Synonyms]:
    """The pairs of which both have so many contexts, and more than one or two letters."""
    found = search([phrase for each in pairs for phrase in (each.first, each.second)], sentences, least)
    both = ((each, (each.first, each.second)) for each in pairs)
    return [each for each, names in both if all(len(name) > LETTERS and len(found[name]) >= least for name in names)]


def questions(pairs: Sequence[Synonyms]) -> list[Question]:
    """A question for each expression, on the first of its synonyms. Wrong choices have no word in common with it, and no meaning in any pair."""
    same = _alike(pairs)
    right: dict[str, str] = {}
    for each in pairs:
        right.setdefault(each.first, each.second)
    choices = sorted(set(right.values()))
    made = []
    for phrase, answer in right.items():
        random = Random(f"{SEED}/{phrase}")  # noqa: S311 (no secret)
        wrong = [each for each in choices if each not in same[phrase] | same[answer] and not stems(each) & stems(phrase)]
        if len(wrong) >= WRONG:
            made.append(Question(phrase, (answer, *random.sample(wrong, WRONG))))
    return made


def _alike(pairs: Sequence[Synonyms]) -> dict[str, set[str]]:
    """Each expression with those that mean the same in some pair."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in pairs:
        found[each.first] |= {each.first, each.second}
        found[each.second] |= {each.first, each.second}
    return found
