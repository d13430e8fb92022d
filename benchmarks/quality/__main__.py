"""Ranking quality: ``python -m benchmarks.quality [--task NAME ...] [--system NAME ...] [--weights
PATH] [--data DIR] [--out DIR]``.

Without ``--task`` the retrieval tasks: every way of ranking, and recall of the span index. The
papers' evaluations take any of their systems (``--system``, by default the encoder that ships) from
its own weights or from ``--weights``; STS-B-Context takes another table, too (``--contexts``,
``--columns``). ``--all`` runs every row of the tables whose data and weights are at hand, and says
of the other systems what they need.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import results
from benchmarks.phrases import phrases
from benchmarks.quality import encoders, recall, retrieval, significance
from benchmarks.quality.collection import ingest_task
from benchmarks.quality.encoders import Model
from benchmarks.quality.evaluations import EVALUATIONS, Evaluation, measure_stsb_context
from benchmarks.quality.papers import result_name, runs
from benchmarks.quality.stsb_context import COLUMNS, SAME
from benchmarks.quality.systems import registry
from benchmarks.quality.tasks import ALL, TASKS


def measure_retrieval(
    names: Iterable[str], model: Model, data: Path, calls: int | None, output_folder: Path
) -> None:
    """The retrieval tasks."""
    suffix = model.suffix(calls)
    for name in names:
        task = ALL[name]
        collection = ingest_task(task, data, model, calls)
        measured = retrieval.measure(collection, list(task.queries(data, "dev")))
        results.write(
            f"retrieval{suffix}-{name}",
            {"task": name, "model": model.label, "about": task.about, **measured},
            output_folder,
        )
        results.write(
            f"recall{suffix}-{name}",
            {"task": name, "model": model.label, **recall.measure(collection, phrases(data))},
            output_folder,
        )


def measure_system(
    tasks: Mapping[str, Evaluation],
    system: str,
    weights: str | None,
    data: Path,
    output_folder: Path,
) -> None:
    """The papers' evaluations of one system, loaded once.

    Raises SystemExit where something is missing.
    """
    loaded = registry.load(system, weights, data)
    for task, evaluation in tasks.items():
        started_at = time.monotonic()
        results.write(
            result_name(task, system),
            {
                "task": task,
                "system": system,
                "about": evaluation.about,
                **evaluation.measure(loaded, data),
            },
            output_folder,
        )
        print(f"{task} by {system}: {time.monotonic() - started_at:.0f} s", file=sys.stderr)


def measure_all(model: Model, data: Path, calls: int | None, output_folder: Path) -> None:
    """Every row of the tables that can be run here; what cannot is said."""
    for system, tasks in runs().items():
        try:
            measure_system(
                {name: EVALUATIONS[name] for name in tasks if EVALUATIONS[name].at_hand},
                system,
                None,
                data,
                output_folder,
            )
        except SystemExit as missing:
            print(f"{system}: not run: {missing}", file=sys.stderr)
    significance.write(data, output_folder)
    measure_retrieval(ALL, model, data, calls, output_folder)


def parse_columns(text: str) -> dict[str, str]:
    """``query=NAME,context=NAME,...``; what is not said is called as in dev.tsv.

    Raises ArgumentTypeError for a column that there is none of.
    """
    named_columns = dict(assignment.partition("=")[::2] for assignment in text.split(","))
    if unknown := sorted({*named_columns} - {*COLUMNS}):
        raise argparse.ArgumentTypeError(
            f"{', '.join(unknown)} is none of {', '.join(COLUMNS)}: give NAME=COLUMN for each, with commas between"
        )
    return {**SAME, **named_columns}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    encoders.add_options(parser)
    parser.add_argument(
        "--calls",
        type=int,
        help="of calls_sgd about so many calls, of medquad so many answers, evenly spread; default: all",
    )
    parser.add_argument(
        "--task",
        action="append",
        choices=[*ALL, *EVALUATIONS],
        help="only this one; may be repeated",
    )
    parser.add_argument(
        "--system",
        action="append",
        choices=registry.SYSTEMS,
        help="of the papers' tables; default: slice, the one that ships",
    )
    parser.add_argument("--weights", help="what the system is loaded from; default: its own")
    parser.add_argument(
        "--contexts",
        type=Path,
        help="the table of STS-B-Context, of tabs; default: dev.tsv of the data folder",
    )
    parser.add_argument(
        "--columns",
        type=parse_columns,
        default=SAME,
        help="query=NAME,context=NAME,target=NAME,score=NAME of it; numbers without a heading",
    )
    parser.add_argument("--all", action="store_true", help="every task and system that is at hand")
    parser.add_argument(
        "--out", type=Path, default=results.RESULTS, help="the folder of the results"
    )
    options = parser.parse_args()
    model = encoders.load_model(options)
    if options.all:
        measure_all(model, options.data, options.calls, options.out)
        return
    task_names = options.task or list(TASKS)
    measure_retrieval(
        [name for name in task_names if name in ALL],
        model,
        options.data,
        options.calls,
        options.out,
    )
    evaluations = {
        **EVALUATIONS,
        "stsb-context": replace(
            EVALUATIONS["stsb-context"],
            measure=partial(measure_stsb_context, file=options.contexts, columns=options.columns),
        ),
    }
    papers = {name: evaluations[name] for name in task_names if name in EVALUATIONS}
    for system in options.system or ["slice"] if papers else ():
        measure_system(papers, system, options.weights, options.data, options.out)


if __name__ == "__main__":
    main()
