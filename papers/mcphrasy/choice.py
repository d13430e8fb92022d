"""Turney's questions: which of five words means the same as two words?

With a reader of them; `papers.mcphrasy.synonyms` makes questions of the same form from WordNet.
Turney, "Domain and function: a dual-space model of semantic relations and compositions", JAIR 44,
2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.systems import System
from hybrid_search.text.types import Floats
from papers.mcphrasy.files import require_file
from papers.mcphrasy.pairs import coverage, similarities

FILE = "turney/data.txt"
ORIGIN = (
    "https://storage.googleapis.com/phrase-bert/turney/data.txt, the file of Phrase-BERT's"
    " repository (Turney's own name for it is jair.data)"
)
FIELDS = 8
"""The fields of a line of Turney's: the bigram, the right unigram, the bigram's two words, and four
wrong ones. The third and fourth are no choices.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A phrase and its choices, of which the first is right."""

    phrase: str
    choices: tuple[str, ...]


def read(path: Path) -> list[Question]:
    """Return Turney's questions, whose fields are separated by `` | ``.

    Raises SystemExit for a line that does not have eight, or if the file is missing.
    """
    lines = require_file(path, f"put there {ORIGIN}").read_text(encoding="utf-8").splitlines()
    return [
        _question(line, f"{path}, line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]


def _question(line: str, where: str) -> Question:
    fields = [field.strip() for field in line.split("|")]
    if len(fields) != FIELDS:
        raise SystemExit(f"{where}: {len(fields)} fields between |, not {FIELDS}")
    return Question(fields[0], (fields[1], *fields[4:]))


def measure(system: System, data: Path) -> dict[str, Any]:
    """Return the accuracy on Turney's 2,180 questions.

    The paper reports 38.7 for SpanBERT, 57.2 for Phrase-BERT and 71.3 for its best.
    """
    return score(system, read(data / FILE))


def score(system: System, questions: Sequence[Question]) -> dict[str, Any]:
    """Return the share of questions whose right choice has the highest score.

    If n choices share the highest score, the right one among them, the question counts 1/n.
    """
    pairs = [(question.phrase, choice) for question in questions for choice in question.choices]
    pair_scores = similarities(
        system, [phrase for phrase, _ in pairs], [choice for _, choice in pairs]
    )
    split = np.split(pair_scores, np.cumsum([len(question.choices) for question in questions])[:-1])
    right = [_credit(choice_scores) for choice_scores in split]
    return {
        "questions": len(questions),
        "accuracy": round(float(np.mean(right)), 4),
        **coverage(system, [text for pair in pairs for text in pair]),
    }


def _credit(scores: Floats) -> float:
    """Return 1 if the first score is the highest, 1/n if it is one of n equal ones, else 0."""
    best = scores == scores.max()
    return float(best[0]) / int(best.sum())
