"""Synonyms: questions of Turney's form from WordNet, on expressions that no model was trained on.

A question has an expression, one that means the same and shares no word with it, and four that mean
the same as others. Questions take only expressions that are frequent enough in the corpora, so that
similarities are compared; the share of the others is reported. Wrong choices are drawn at random,
while many of Turney's are close to the right one: figures here are higher than there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.quality.systems import System
from papers.mcphrasy import corpora
from papers.mcphrasy.choice import Question, score
from papers.mcphrasy.contexts import search
from papers.mcphrasy.wordnet import Synonyms, stems, synonyms

LEAST = 10
"""Contexts that an expression must have."""

LETTERS = 2
"""Most expressions with only so many letters are symbols: "A" for adenine."""

WRONG = 4
SEED = 3


def measure(system: System, data: Path) -> dict[str, Any]:
    """Return the accuracy, and how many of all pairs the corpora have."""
    all_pairs, pairs = load_pairs(data)
    return {
        "pairs": len(all_pairs),
        "pairs held": len(pairs),
        **score(system, build_questions(pairs)),
    }


@lru_cache(maxsize=1)
def load_pairs(data: Path) -> tuple[list[Synonyms], list[Synonyms]]:
    """Return all pairs, and those that the corpora have; searched once for all systems."""
    all_pairs = synonyms(data)
    return all_pairs, filter_frequent(all_pairs, corpora.read(data))


def filter_frequent(
    pairs: Sequence[Synonyms], sentences: Iterable[str], least: int = LEAST
) -> list[Synonyms]:
    """Return the pairs of which both have `least` contexts, and more than one or two letters."""
    contexts = search(
        [phrase for pair in pairs for phrase in (pair.first, pair.second)], sentences, least
    )
    named_pairs = ((pair, (pair.first, pair.second)) for pair in pairs)

    def is_frequent(name: str) -> bool:
        return len(name) > LETTERS and len(contexts[name]) >= least

    return [pair for pair, names in named_pairs if all(map(is_frequent, names))]


def build_questions(pairs: Sequence[Synonyms]) -> list[Question]:
    """Return a question for each expression, on the first of its synonyms.

    Wrong choices have no word in common with it, and no meaning in any pair.
    """
    same = _group_synonyms(pairs)
    right: dict[str, str] = {}
    for pair in pairs:
        right.setdefault(pair.first, pair.second)
    choices = sorted(set(right.values()))
    question_list = []
    for phrase, answer in right.items():
        random = Random(f"{SEED}/{phrase}")  # noqa: S311 (no secret)
        related, letters = same[phrase] | same[answer], stems(phrase)
        wrong = [
            choice for choice in choices if choice not in related and not stems(choice) & letters
        ]
        if len(wrong) >= WRONG:
            question_list.append(Question(phrase, (answer, *random.sample(wrong, WRONG))))
    return question_list


def _group_synonyms(pairs: Sequence[Synonyms]) -> dict[str, set[str]]:
    """Return each expression with those that mean the same in some pair."""
    same_meaning: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        same_meaning[pair.first] |= {pair.first, pair.second}
        same_meaning[pair.second] |= {pair.first, pair.second}
    return same_meaning
