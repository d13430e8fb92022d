"""PPDB-filtered: are two phrases paraphrases?

Reported is accuracy, by a threshold on the score that is chosen on the dev split. Wang, Thompson,
Iyyer, "Phrase-BERT", EMNLP 2021: pairs of PPDB 2.0, positive and negative ones with equally many
words in common. They train a classifier on the first 70%, choose it on the next 15% and measure on
the last; a threshold needs no training, and the first are not used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.correlation import auc
from benchmarks.quality.systems import System
from hybrid_search.text.types import Floats
from papers.mcphrasy.files import require_file
from papers.mcphrasy.pairs import coverage, similarities

FILE = "ppdb_filtered/examples.json"
ORIGIN = (
    "https://storage.googleapis.com/phrase-bert/ppdb_exact/examples.json,"
    " from Phrase-BERT's repository"
)
LABELS = {"pos": 1, "neg": 0}
DEV, TEST = 0.7, 0.85
"""Where the two splits begin, in the file's order."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two phrases; `same` is 1 for paraphrases, else 0."""

    first: str
    second: str
    same: int


def read(path: Path) -> list[Pair]:
    """Return the pairs of a JSON list of ``[phrase, phrase, "pos" | "neg"]``.

    Raises SystemExit if the file is missing or a row is not such a list.
    """
    rows = json.loads(require_file(path, f"put there {ORIGIN}").read_text(encoding="utf-8"))
    return [_pair(row, f"{path}, row {number}") for number, row in enumerate(rows, 1)]


def _pair(row: Any, where: str) -> Pair:
    try:
        first, second, label = row
        return Pair(first, second, LABELS[label])
    except (ValueError, TypeError, KeyError) as error:
        raise SystemExit(
            f"{where}: {row!r:.80} is not [phrase, phrase, {' | '.join(LABELS)}]"
        ) from error


def measure(system: System, data: Path) -> dict[str, Any]:
    """Return accuracy on the test split, the threshold, and the area under the curve.

    The threshold is the best on dev; the area is that of test, and needs none.
    """
    pairs = read(data / FILE)
    dev, test = (math.ceil(len(pairs) * share) for share in (DEV, TEST))
    used, dev_count = pairs[dev:], test - dev
    scores = similarities(system, [pair.first for pair in used], [pair.second for pair in used])
    labels = np.array([pair.same for pair in used])
    best_threshold = threshold(scores[:dev_count], labels[:dev_count])
    return {
        "dev": dev_count,
        "test": len(used) - dev_count,
        "threshold": round(best_threshold, 4),
        "accuracy": round(
            float(np.mean((scores[dev_count:] > best_threshold) == labels[dev_count:])), 4
        ),
        "auc": round(auc(scores[dev_count:], labels[dev_count:].tolist()), 4),
        **coverage(system, [phrase for pair in used for phrase in (pair.first, pair.second)]),
    }


def threshold(scores: Floats, labels: Sequence[int] | np.ndarray[Any, Any]) -> float:
    """Return the threshold, above which pairs count as paraphrases, with the highest accuracy.

    It lies between two of the scores; among equal ones the lowest.
    """
    order = np.argsort(scores, kind="stable")
    values, right = np.asarray(scores, dtype=np.float64)[order], np.asarray(labels)[order]
    edges = np.concatenate([[values[0] - 1], (values[:-1] + values[1:]) / 2, [values[-1] + 1]])
    below = np.concatenate([[0], np.cumsum(right == 0)])
    above = np.concatenate([np.cumsum((right == 1)[::-1])[::-1], [0]])
    possible = np.concatenate(
        [[True], values[1:] > values[:-1], [True]]
    )  # none falls between two equal scores
    return float(edges[np.argmax(np.where(possible, below + above, -1))])
