"""How well mining finds labelled intents: probabilities, precision and recall, by threshold.

The intents of calls_sgd are topics with three phrases each (`intent_topics`). A turn counts by its
best mention. It is right if the customer states the intent in it for the first time. Later turns of
the same call may repeat the intent and are not labelled: they are left out. The map from scores to
probabilities is fitted on the intents of the part ``train`` and measured on those of ``dev``.

    python -m benchmarks.quality.mining --url embedded:FOLDER --index calls
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from benchmarks import results
from benchmarks.quality.intent_topics import build_topics
from hybrid_search import connect
from hybrid_search.phrases.logistic import calibration_error, fit_logistic
from hybrid_search.phrases.match import Match
from hybrid_search.search.calibration import MEASURED

DATA = Path(__file__).parents[3] / "shared" / "data" / "calls_sgd"

LEAST_PROBABILITY = 0.001
"""Mentions below it are not looked at: of 1,000 of them one would be right."""

LIKELY = 0.1
"""From here on probabilities are measured by themselves: most of all mentions are below."""

THRESHOLDS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)

Turn = tuple[str, str, int]
"""Intent, call and number of a turn."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The intents by part, and the turns in which each is stated."""

    parts: Mapping[str, str]
    turns: frozenset[Turn]

    @classmethod
    def read(cls, folder: Path, queries: Iterable[Mapping[str, Any]]) -> Labels:
        """Read the labels of a data set."""
        with gzip.open(folder / "qrels.tsv.gz", "rt") as file:
            rows = [line.rstrip("\n").split("\t") for line in file][1:]
        turns = frozenset((intent, call, int(turn)) for intent, call, turn, _ in rows)
        return cls({query["id"]: query["part"] for query in queries}, turns)


def find_best_probabilities(matches: Iterable[Match]) -> dict[Turn, float]:
    """Return the probability of the best mention of each turn."""
    best: dict[Turn, float] = {}
    for match in matches:
        turn = (match.topic, match.id, match.turn)
        best[turn] = max(best.get(turn, 0.0), match.probability)
    return best


def measure(best: Mapping[Turn, float], labels: Labels, model: str) -> dict[str, Any]:
    """Return the figures of both parts, by the map that is fitted on the first."""
    calls = {(intent, call) for intent, call, _ in labels.turns}
    judged = [turn for turn in best if turn in labels.turns or turn[:2] not in calls]
    scores = np.array([MEASURED[model].inverse_span(_inside(best[turn])) for turn in judged])
    are_right = np.array([turn in labels.turns for turn in judged])
    is_train = np.array([labels.parts[turn[0]] == "train" for turn in judged])
    fitted = fit_logistic(scores[is_train], are_right[is_train])
    stated = {part: sum(labels.parts[turn[0]] == part for turn in labels.turns) for part in PARTS}
    return {
        "midpoint": round(fitted.midpoint, 4),
        "slope": round(fitted.slope, 3),
        **{
            part: measure_part(fitted.span(scores[rows]), are_right[rows], stated[part])
            for part, rows in (("train", is_train), ("dev", ~is_train))
        },
    }


PARTS = ("train", "dev")


def measure_part(
    probabilities: NDArray[np.float64], are_right: NDArray[np.bool_], stated: int
) -> dict[str, Any]:
    """Return the figures of one part; `stated` is the number of turns that should be found."""
    is_likely = probabilities >= LIKELY
    return {
        "turns": len(probabilities),
        "stated": stated,
        "calibration error": round(calibration_error(probabilities, are_right), 4),
        "calibration error of likely mentions": round(
            calibration_error(probabilities[is_likely], are_right[is_likely]), 4
        ),
        "average precision": round(float(average_precision_score(are_right, probabilities)), 4),
        "thresholds": {
            str(threshold): _measure_threshold(probabilities >= threshold, are_right, stated)
            for threshold in THRESHOLDS
        },
    }


def _measure_threshold(
    is_found: NDArray[np.bool_], are_right: NDArray[np.bool_], stated: int
) -> dict[str, float]:
    right = int((is_found & are_right).sum())
    return {
        "precision": round(right / max(1, int(is_found.sum())), 4),
        "recall": round(right / stated, 4),
    }


def _inside(probability: float) -> float:
    """Return a probability that is neither 0 nor 1."""
    return min(max(probability, 1e-12), 1 - 1e-12)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", required=True, help="where calls_sgd is indexed")
    parser.add_argument("--index", default="calls")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of calls_sgd")
    options = parser.parse_args()
    lines = (options.data / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [json.loads(line) for line in lines]
    topics = build_topics(queries, LEAST_PROBABILITY)
    with connect(options.url) as client:
        spec = client.describe(options.index).spec
        best = find_best_probabilities(client.mine(topics, index=options.index))
    figures = measure(best, Labels.read(options.data, queries), spec.fingerprint)
    results.write("mining", {"model": spec.model, **figures}, results.QUALITY)


if __name__ == "__main__":
    main()
