"""Fit the calibration that ships with a model: ``python -m benchmarks.quality.calibrate``.

On the queries marked `train` (never those that are measured), the parameters of both maps are
chosen from a grid so that the default fusion at alpha 0.5 has the best mean nDCG@10 over the tasks.
A second fit takes the turns of calls_sgd as documents of their own: BM25 has another scale there,
and users who index short texts should have a good default too.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality import encoders, turns
from benchmarks.quality.collection import Collection, ingest_task, sample_evenly
from benchmarks.quality.fitting import SCORE_MIDPOINTS, fit
from benchmarks.quality.measures import ndcg
from benchmarks.quality.tasks import TASKS
from hybrid_search.encoder.model_folder import CALIBRATION
from hybrid_search.search.calibration import COSINE, KEYS, SCORE, Calibration
from hybrid_search.search.fusion import fuse_calibrated
from hybrid_search.search.types import Legs, Scores
from hybrid_search.system import file_digest
from hybrid_search.text.words import distinct_words

MOST = 250


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A query's candidates: raw scores, places, and which of them are relevant.

    `span` are the scores that spans are chosen by, `cosine` the best cosines.
    """

    bm25: Scores
    span: Scores
    cosine: Scores
    terms: int
    places: Sequence[Hashable]
    right: set[Hashable]
    group: str

    def by_cosine(self) -> Example:
        """Return the same with spans chosen by cosine alone."""
        return replace(self, span=self.cosine)

    def ndcg(self, calibration: Calibration, alpha: float = 0.5) -> float:
        """Return nDCG@10 of the calibrated fusion."""
        placeholder = np.zeros(len(self.bm25), dtype=np.int64)
        scores = fuse_calibrated(
            Legs(self.bm25, self.span, placeholder, placeholder, self.terms, calibration), alpha
        )
        order = np.lexsort((-self.span, -scores))
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
        bm25 = np.array([passage.stored.bm25 for passage in scored])
        span = np.array([passage.span_score for passage in scored])
        cosine = np.array([passage.cosines.max(initial=0.0) for passage in scored])
        places = [collection.place(scored_passage) for scored_passage in scored]
        calibration_examples.append(
            Example(
                bm25,
                span,
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
    parser.add_argument(
        "--task", action="append", choices=TASKS, help="only this task; may be repeated"
    )
    options = parser.parse_args()
    model, names = encoders.load_model(options), options.task or list(TASKS)
    tasks: list[Sequence[Example | turns.ScoredQuery]] = [
        collect_examples(
            ingest_task(TASKS[name], options.data, model, options.calls), "train", options.data
        )
        for name in names
    ]
    tasks.append(turns.score_part(model.encoder, options.data, "train"))
    path = model.folder / CALIBRATION
    fits = {COSINE: fit([[query.by_cosine() for query in task] for task in tasks])}
    if model.prior:
        fits[SCORE] = fit(tasks, SCORE_MIDPOINTS)
    write_fits(path, _describe_passages(model), fits, names)
    print(path.read_text())


def _describe_passages(model: encoders.Model) -> str:
    """Return what the maps are for: a precision, or a precision and a dimension."""
    info = model.encoder.info
    return f"{info.precision}-{info.dimension}" if model.dimension else info.precision


def write_fits(
    path: Path, key: str, fits: Mapping[str, tuple[Calibration, float]], tasks: Sequence[str]
) -> None:
    """Write the maps of each way to choose spans, and their mean nDCG@10, for these passages.

    `tasks` are those that they were fitted on, beside the turns of calls_sgd.
    """

    def add(payload: dict[str, Any]) -> None:
        for spans_by, (maps, _) in fits.items():
            payload.setdefault(KEYS[spans_by], {})[key] = maps.to_dict()
        payload["fitted_on"] = {
            "tasks": [*sorted(tasks), "turns of calls_sgd"],
            "queries": "train",
            "mean ndcg@10 at alpha 0.5": {name: round(mean, 4) for name, (_, mean) in fits.items()},
        }

    change_calibration(path, add)


def change_calibration(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the maps in a model's file, and record its new digest."""
    payload: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    change(payload)
    path.write_text(json.dumps(payload, indent=1) + "\n")
    record_digest(path)


def record_digest(path: Path) -> None:
    """Record the digest of a model's file in ``encoder.json``, so that a change is seen."""
    settings_path = path.parent / "encoder.json"
    settings = json.loads(settings_path.read_text())
    settings["sha256"][path.name] = file_digest(path)
    settings_path.write_text(json.dumps(settings, indent=2) + "\n")


if __name__ == "__main__":
    main()
