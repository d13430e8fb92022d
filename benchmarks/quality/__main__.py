"""Measure how well each way of ranking does: ``python -m benchmarks.quality [--task NAME ...]``.

On every retrieval task all ways of ranking, and the recall of the index against exhaustive search.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from benchmarks import results
from benchmarks.phrases import phrases
from benchmarks.quality import encoders, recall, retrieval
from benchmarks.quality.collection import ingest_task
from benchmarks.quality.encoders import Model
from benchmarks.quality.tasks import ALL, TASKS


def measure_retrieval(
    names: Iterable[str], model: Model, data: Path, calls: int | None, output_folder: Path
) -> None:
    """Measure ranking and recall on the tasks of these names."""
    suffix = model.suffix(calls)
    for name in names:
        task = ALL[name]
        collection = ingest_task(task, data, model, calls)
        rankings = retrieval.measure(collection, list(task.queries(data, "dev")))
        results.write(
            f"retrieval{suffix}-{name}",
            {"task": name, "model": model.label, "about": task.about, **rankings},
            output_folder,
        )
        recalls = recall.measure(collection, phrases(data))
        results.write(
            f"recall{suffix}-{name}",
            {"task": name, "model": model.label, **recalls},
            output_folder,
        )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    encoders.add_options(parser)
    parser.add_argument(
        "--calls",
        type=int,
        help="evenly sample about this many calls of calls_sgd, answers of medquad; default: all",
    )
    parser.add_argument(
        "--task", action="append", choices=ALL, help="only this task; may be repeated"
    )
    parser.add_argument("--all", action="store_true", help="every task")
    parser.add_argument(
        "--out", type=Path, default=results.QUALITY, help="the folder of the results"
    )
    options = parser.parse_args()
    model = encoders.load_model(options)
    names = list(ALL) if options.all else options.task or list(TASKS)
    measure_retrieval(names, model, options.data, options.calls, options.out)


if __name__ == "__main__":
    main()
