"""Marked examples from turns as customers write them: the clauses that are nearest to the intent.

Nobody marked them. The mark is a run of clauses between punctuation whose vector, encoded by
itself, is nearest to that of the intent's name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from export.boundaries.corpora import Request
from export.boundaries.encoded import Progress, encode_alone
from export.boundaries.marked import MarkedExample, mark_place
from hybrid_search.encoder import Encoder
from hybrid_search.text.types import Floats

LEAST_CLAUSES = 3
LONGEST_RUN = 3
TURN_WORDS = (12, 70)
RUN_WORDS = (3, 18)

LENGTH_BONUS = 0.02
"""Added to the cosine of a run for each e-fold of its words: of equal runs the longer one."""

_PAUSE = re.compile(r"[.?!,;:—–]+(?=\s|$)|\s[-–—]\s")

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Choice:
    """A request, and the runs of clauses of its text that may be marked."""

    query: str
    text: str
    runs: tuple[Place, ...]

    @property
    def run_texts(self) -> list[str]:
        """The text of each run."""
        return [self.text[start:end] for start, end in self.runs]


def mark_nearest_clauses(
    encoder: Encoder,
    requests: Sequence[Request],
    count: int,
    random: Random,
    progress: Progress = lambda _: None,
) -> list[MarkedExample]:
    """Return up to `count` requests of several clauses, of which those nearest to the intent.

    Args:
        encoder: Tells what is near.
        requests: The requests to draw from.
        count: The number of examples.
        random: Draws.
        progress: Is told how many clauses are encoded.
    """
    choices = _draw_choices(requests, count, random)
    texts = [text for choice in choices for text in (choice.query, *choice.run_texts)]
    vectors = encode_alone(encoder, texts, progress)
    examples = (_mark_nearest(choice, vectors) for choice in choices)
    return [example for example in examples if example]


def _draw_choices(requests: Sequence[Request], count: int, random: Random) -> list[Choice]:
    shuffled = list(requests)
    random.shuffle(shuffled)
    choices: dict[str, Choice] = {}
    for request in shuffled:
        text = " ".join(request.text.split())
        clauses = list_clauses(text)
        runs = _list_runs(text, clauses)
        is_usable = len(clauses) >= LEAST_CLAUSES and len(runs) >= LEAST_CLAUSES
        if is_usable and _has_words(text, TURN_WORDS):
            choices.setdefault(text, Choice(request.intent, text, runs))
        if len(choices) == count:
            break
    return list(choices.values())


def list_clauses(text: str) -> list[Place]:
    """Return start and end of what is between punctuation, without blanks at its ends."""
    pauses = [match.span() for match in _PAUSE.finditer(text)]
    starts = [0, *(end for _, end in pauses)]
    ends = [*(start for start, _ in pauses), len(text)]
    stripped = (_strip(text, place) for place in zip(starts, ends, strict=True))
    return [(start, end) for start, end in stripped if start < end]


def _list_runs(text: str, clauses: Sequence[Place]) -> tuple[Place, ...]:
    """Return every run of up to `LONGEST_RUN` clauses with a length to mark."""
    runs = (
        (start, end)
        for number, (start, _) in enumerate(clauses)
        for _, end in clauses[number : number + LONGEST_RUN]
    )
    return tuple(run for run in runs if _has_words(text[slice(*run)], RUN_WORDS))


def _mark_nearest(choice: Choice, vectors: Mapping[str, Floats]) -> MarkedExample | None:
    query = vectors[choice.query]

    def score(run: Place) -> float:
        text = choice.text[slice(*run)]
        cosine = float(query @ vectors[text])
        return cosine + LENGTH_BONUS * math.log(len(text.split()))

    return mark_place(choice.query, choice.text, *max(choice.runs, key=score))


def _strip(text: str, place: Place) -> Place:
    start, end = place
    piece = text[start:end]
    return end - len(piece.lstrip()), start + len(piece.rstrip())


def _has_words(text: str, limits: tuple[int, int]) -> bool:
    least, most = limits
    return least <= len(text.split()) <= most
