"""Measure how well the product ranks and marks: ``python -m benchmarks.quality [--only NAME,...]``.

- ``retrieval``: on every retrieval task all ways of ranking, and the recall of the index against
  exhaustive search.
- ``localisation``, ``topics``, ``intents``, ``written``, ``distinctions``, ``languages``: what is
  found and marked where words differ, by any model; see the modules of these names.
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.phrases import phrases
from benchmarks.quality import (
    distinctions,
    encoders,
    intents,
    languages,
    localisation,
    recall,
    retrieval,
    topics,
    written,
)
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


MEANING: dict[str, Callable[[Model, Path], dict[str, Any]]] = {
    "localisation": lambda model, data: localisation.measure(model.encoder, model.prior, data),
    "topics": lambda model, _: topics.measure(model.encoder),
    "intents": lambda model, data: intents.measure(model.encoder, data),
    "written": lambda model, data: written.measure(model.encoder, data),
    "distinctions": lambda model, data: distinctions.measure(model.encoder, data),
    "languages": lambda model, data: languages.measure(model.encoder, data),
}
"""Measures of meaning, by the name of their result."""

NAMES = ("retrieval", *MEANING)


def measure_meaning(name: str, model: Model, data: Path, output_folder: Path) -> None:
    """Write the result of one of `MEANING`."""
    measured = MEANING[name](model, data)
    results.write(f"{name}{model.suffix()}", {"model": model.label, **measured}, output_folder)


def main() -> None:
    """Run the command."""
    options = _parse_arguments()
    model = encoders.load_model(options)
    for name in options.only:
        if name == "retrieval":
            tasks = list(ALL) if options.all else options.task or list(TASKS)
            measure_retrieval(tasks, model, options.data, options.calls, options.out)
        else:
            measure_meaning(name, model, options.data, options.out)


def _parse_arguments() -> Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    encoders.add_options(parser)
    parser.add_argument(
        "--only",
        type=_parse_names,
        default=NAMES,
        help=f"some of {','.join(NAMES)}; default: all",
    )
    parser.add_argument(
        "--calls",
        type=int,
        help="retrieval: evenly sample about this many calls of calls_sgd, answers of medquad;"
        " default: all",
    )
    parser.add_argument(
        "--task", action="append", choices=ALL, help="retrieval: only this task; may be repeated"
    )
    parser.add_argument("--all", action="store_true", help="retrieval: every task")
    parser.add_argument(
        "--out", type=Path, default=results.QUALITY, help="the folder of the results"
    )
    return parser.parse_args()


def _parse_names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := [name for name in names if name not in NAMES]:
        raise argparse.ArgumentTypeError(
            f"no measure {', '.join(map(repr, unknown))}: choose from {', '.join(NAMES)}"
        )
    return names


if __name__ == "__main__":
    main()
