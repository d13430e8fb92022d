"""Fit the calibration that ships with a model: ``python -m benchmarks.quality.calibrate [--model DIR] [--calls N]``.

On the queries marked `train` (never those that are measured), the parameters of both maps are chosen from a grid so that the default fusion at
alpha 0.5 has the best mean nDCG@10 over the tasks.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.quality import encoders
from benchmarks.quality.collection import Collection, ingested, sampled
from benchmarks.quality.measures import grouped_mean, ndcg
from benchmarks.quality.tasks import TASKS
from hybrid_search.calibration import FILE, Calibration
from hybrid_search.fusion.base import Legs, Scores
from hybrid_search.fusion.calibrated import calibrated
from hybrid_search.words import query_terms

MOST = 250
MIDPOINTS = (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7)
SLOPES = (4.0, 6.0, 8.0, 10.0, 12.0)
"""A steeper map than 12 is nearly a step: most scores would be 0 or 1."""
SATURATIONS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
NOISE = 0.002
"""Means of nDCG@10 that are this near say nothing about which is better."""


class Judged(Protocol):
    """A query whose fused ranking can be judged under any calibration."""

    @property
    def group(self) -> str:
        """What is averaged over first."""
        ...

    def ndcg(self, calibration: Calibration, alpha: float = 0.5) -> float:
        """nDCG@10 of the calibrated fusion."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A query's candidates: raw scores, places, and which are right."""

    bm25: Scores
    cosine: Scores
    terms: int
    places: Sequence[Hashable]
    right: set[Hashable]
    group: str

    def ndcg(self, calibration: Calibration, alpha: float = 0.5) -> float:
        nobody = np.zeros(len(self.bm25), dtype=np.int64)
        scores = calibrated(Legs(self.bm25, self.cosine, nobody, nobody, self.terms, calibration), alpha)
        order = np.lexsort((-self.cosine, -scores))
        return ndcg([self.places[number] for number in order[:40]], self.right)


def examples(collection: Collection, part: str, data: Path) -> list[Example]:
    """Candidates of at most `MOST` queries of `part`."""
    found = []
    for query in sampled([each for each in collection.task.queries(data, part) if collection.right(each)], MOST):
        _, scored = collection.candidates(query)
        bm25, cosine = (np.array(values) for values in zip(*((each.stored.bm25, each.cosine) for each in scored), strict=True))
        places = [collection.place(each) for each in scored]
        found.append(Example(bm25, cosine, len(query_terms(query.text)), places, collection.right(query), query.group))
    return found


def fit(tasks: Sequence[Sequence[Judged]]) -> tuple[Calibration, float]:
    """The best of the grid by mean nDCG@10 over tasks at alpha 0.5, and that mean."""
    scored = [
        (_mean(tasks, candidate), candidate) for candidate in (Calibration(*each) for each in itertools.product(MIDPOINTS, SLOPES, SATURATIONS))
    ]
    best = max(mean for mean, _ in scored)
    # Of those that are as good as the best, to the noise of the sets, the gentlest: a phrase of two words has lower cosines than the questions
    # here, and a steep map would call all of them nil. (Recall@10 on the bundled sample's topics: .42 with slope 4, .36 with 12.)
    mean, chosen = max((each for each in scored if each[0] >= best - NOISE), key=lambda each: (-each[1].slope, each[0]))
    return chosen, mean


def _mean(tasks: Sequence[Sequence[Judged]], calibration: Calibration) -> float:
    means = [grouped_mean([each.ndcg(calibration) for each in task], [each.group for each in task]) for task in tasks]
    return sum(means) / len(means)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    encoders.add_options(parser)
    parser.add_argument("--calls", type=int, help="about so many of calls_sgd, evenly spread; default: all")
    options = parser.parse_args()
    model = encoders.chosen(options)
    tasks = [examples(ingested(task, options.data, model, options.calls), "train", options.data) for task in TASKS.values()]
    chosen, mean = fit(tasks)
    info = model.encoder.info
    key = f"{info.precision}-{info.dimension}" if model.dimension else info.precision
    path = model.folder / FILE
    held: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {"precisions": {}}
    fitted_on = {"tasks": sorted(TASKS), "queries": "train", "count": sum(map(len, tasks)), "mean ndcg@10 at alpha 0.5": round(mean, 4)}
    held["precisions"][key] = asdict(chosen)
    path.write_text(json.dumps({**held, "fitted_on": fitted_on}, indent=1) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
