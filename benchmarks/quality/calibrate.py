"""Fit the calibration that ships with a model: ``python -m benchmarks.quality.calibrate``.

On the queries marked `train` (never those that are measured), the parameters of both maps are
chosen from a grid so that the default fusion at alpha 0.5 has the best mean nDCG@10 over the tasks.
A second fit takes the turns of calls_sgd as documents of their own: BM25 has another scale there,
and users who index short texts should have a good default too.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality import encoders, turns
from benchmarks.quality.collection import Collection, ingest_task, sample_evenly
from benchmarks.quality.fitting import Judged, fit
from benchmarks.quality.measures import ndcg
from benchmarks.quality.tasks import TASKS
from hybrid_search.encoder.model_folder import CALIBRATION
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.fusion.calibrated import fuse_calibrated
from hybrid_search.search.types import Legs, Scores
from hybrid_search.system import file_digest
from hybrid_search.text.words import distinct_words

MOST = 250


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A query's candidates: raw scores, places, and which of them are relevant."""

    bm25: Scores
    cosine: Scores
    terms: int
    places: Sequence[Hashable]
    right: set[Hashable]
    group: str

    def ndcg(self, calibration: Calibration, alpha: float = 0.5) -> float:
        """Return nDCG@10 of the calibrated fusion."""
        placeholder = np.zeros(len(self.bm25), dtype=np.int64)
        scores = fuse_calibrated(
            Legs(self.bm25, self.cosine, placeholder, placeholder, self.terms, calibration), alpha
        )
        order = np.lexsort((-self.cosine, -scores))
        return ndcg([self.places[number] for number in order[:40]], self.right)


def collect_examples(collection: Collection, part: str, data: Path) -> list[Example]:
    """Return the candidates of at most `MOST` queries of `part`."""
    calibration_examples = []
    for query in sample_evenly(
        [
            labelled_query
            for labelled_query in collection.task.queries(data, part)
            if collection.relevant_places(labelled_query)
        ],
        MOST,
    ):
        _, scored = collection.candidates(query)
        bm25, cosine = (
            np.array(values)
            for values in zip(
                *((scored_passage.stored.bm25, scored_passage.cosine) for scored_passage in scored),
                strict=True,
            )
        )
        places = [collection.place(scored_passage) for scored_passage in scored]
        calibration_examples.append(
            Example(
                bm25,
                cosine,
                len(distinct_words(query.text)),
                places,
                collection.relevant_places(query),
                query.group,
            )
        )
    return calibration_examples


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    encoders.add_options(parser)
    parser.add_argument(
        "--calls", type=int, help="about so many of calls_sgd, evenly spread; default: all"
    )
    options = parser.parse_args()
    model = encoders.load_model(options)
    tasks: list[Sequence[Judged]] = [
        collect_examples(
            ingest_task(task, options.data, model, options.calls), "train", options.data
        )
        for task in TASKS.values()
    ]
    tasks.append(turns.score_part(model.encoder, options.data, "train"))
    best_calibration, mean = fit(tasks)
    info = model.encoder.info
    key = f"{info.precision}-{info.dimension}" if model.dimension else info.precision
    path = model.folder / CALIBRATION
    payload: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {"precisions": {}}
    task_names = [*sorted(TASKS), "turns of calls_sgd"]
    fitted_on = {
        "tasks": task_names,
        "queries": "train",
        "count": sum(map(len, tasks)),
        "mean ndcg@10 at alpha 0.5": round(mean, 4),
    }
    payload["precisions"][key] = asdict(best_calibration)
    path.write_text(json.dumps({**payload, "fitted_on": fitted_on}, indent=1) + "\n")
    record_digest(path)
    print(path.read_text())


def record_digest(path: Path) -> None:
    """Record the digest of a model's file in ``encoder.json``, so that a change is seen."""
    settings_path = path.parent / "encoder.json"
    settings = json.loads(settings_path.read_text())
    settings["sha256"][path.name] = file_digest(path)
    settings_path.write_text(json.dumps(settings, indent=2) + "\n")


if __name__ == "__main__":
    main()
