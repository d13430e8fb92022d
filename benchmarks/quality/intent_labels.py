"""The labels of calls_sgd: in which turns an intent is stated, and which mentions they judge."""

from __future__ import annotations

import argparse
import gzip
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_search.search.calibration import Calibration
from hybrid_search.topics.match import Match

Turn = tuple[str, str, int]
"""Intent, call and number of a turn."""


def make_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return the parser of a command that reads calls_sgd from an index; `doc` describes it."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--url", required=True, help="where calls_sgd is indexed")
    parser.add_argument("--index", default="calls")
    return parser


def read_statements(folder: Path) -> list[Turn]:
    """Return the turns of a data set in which an intent is stated."""
    with gzip.open(folder / "qrels.tsv.gz", "rt") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    return [(intent, call, int(turn)) for intent, call, turn, _ in rows]


@dataclass(frozen=True, slots=True)
class Labels:
    """The intents by part, and the turns and the calls in which each is stated."""

    parts: Mapping[str, str]
    turns: frozenset[Turn]
    calls: frozenset[tuple[str, str]]

    @classmethod
    def read(cls, folder: Path, queries: Iterable[Mapping[str, Any]]) -> Labels:
        """Read the labels of a data set."""
        turns = frozenset(read_statements(folder))
        calls = frozenset((intent, call) for intent, call, _ in turns)
        return cls({query["id"]: query["part"] for query in queries}, turns, calls)

    def know(self, turn: Turn) -> bool:
        """Return whether a turn is right or wrong for sure; later turns may repeat an intent."""
        return turn in self.turns or turn[:2] not in self.calls


def find_best_mentions(matches: Iterable[Match]) -> dict[Turn, Match]:
    """Return the most probable mention of each turn."""
    best: dict[Turn, Match] = {}
    for match in matches:
        turn = (match.topic, match.id, match.turn)
        if turn not in best or match.probability > best[turn].probability:
            best[turn] = match
    return best


@dataclass(frozen=True, slots=True, eq=False)
class JudgedMentions:
    """The best mention of each turn that is right or wrong for sure, with its score."""

    matches: Sequence[Match]
    scores: NDArray[np.float64]
    labels: NDArray[np.bool_]

    @classmethod
    def judge(
        cls, best: Mapping[Turn, Match], labels: Labels, used_map: Calibration
    ) -> JudgedMentions:
        """Return the mentions that the labels judge; `used_map` gave them their probabilities."""
        judged = [turn for turn in best if labels.know(turn)]
        probabilities = [_inside(best[turn].probability) for turn in judged]
        scores = np.array([used_map.inverse_span(value) for value in probabilities])
        are_right = np.array([turn in labels.turns for turn in judged])
        return cls([best[turn] for turn in judged], scores, are_right)

    def select(self, rows: NDArray[np.bool_]) -> JudgedMentions:
        """Return some of the mentions."""
        matches = list(itertools.compress(self.matches, rows.tolist()))
        return JudgedMentions(matches, self.scores[rows], self.labels[rows])

    def of_topic(self, name: str) -> JudgedMentions:
        """Return the mentions of one topic."""
        return self.select(np.array([match.topic == name for match in self.matches]))


def _inside(probability: float) -> float:
    """Return a probability that is neither 0 nor 1."""
    return min(max(probability, 1e-12), 1 - 1e-12)
