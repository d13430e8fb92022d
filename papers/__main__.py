"""Measure systems on the papers' evaluations: ``python -m papers --task NAME [--system NAME ...]``.

A system (by default the encoder that ships) is loaded from its own weights or from ``--weights``.
STS-B-Context can be read from another table (``--contexts``, ``--columns``). ``--all`` runs every
row of the tables whose data and weights are available, and prints what the other systems need.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import results
from benchmarks.quality.stsb_context import COLUMNS, SAME
from papers import measured, significance
from papers.evaluations import EVALUATIONS, Evaluation, measure_stsb_context
from papers.measured import result_name
from papers.systems import registry
from papers.tables import tasks_by_system


def measure_system(
    tasks: Mapping[str, Evaluation],
    system: str,
    weights: str | None,
    data: Path,
    output_folder: Path,
) -> None:
    """Run evaluations of one system, which is loaded once.

    Raises SystemExit if weights or data are missing.
    """
    loaded = registry.load(system, weights, data)
    for task, evaluation in tasks.items():
        started_at = time.monotonic()
        result = {
            "task": task,
            "system": system,
            "about": evaluation.about,
            **evaluation.measure(loaded, data),
        }
        results.write(result_name(task, system), result, output_folder)
        print(f"{task} by {system}: {time.monotonic() - started_at:.0f} s", file=sys.stderr)


def measure_all(data: Path, output_folder: Path) -> None:
    """Run every row of the tables that can run here, and print why the others cannot."""
    for system, tasks in tasks_by_system().items():
        available = {name: EVALUATIONS[name] for name in tasks if EVALUATIONS[name].has_data}
        try:
            measure_system(available, system, None, data, output_folder)
        except SystemExit as missing:
            print(f"{system}: not run: {missing}", file=sys.stderr)
    significance.write(data, output_folder)


def parse_columns(text: str) -> dict[str, str]:
    """Return the columns of ``query=NAME,context=NAME,...``, by default as in dev.tsv.

    Raises:
        ArgumentTypeError: For an unknown column.
    """
    named_columns = dict(assignment.partition("=")[::2] for assignment in text.split(","))
    if unknown := sorted({*named_columns} - {*COLUMNS}):
        raise argparse.ArgumentTypeError(
            f"unknown column {', '.join(unknown)}: give NAME=COLUMN for"
            f" {', '.join(COLUMNS)}, separated by commas"
        )
    return {**SAME, **named_columns}


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of data sets")
    parser.add_argument(
        "--task", action="append", choices=EVALUATIONS, help="only this task; may be repeated"
    )
    parser.add_argument(
        "--system",
        action="append",
        choices=registry.SYSTEMS,
        help="a system of the papers' tables; default: slice, the encoder that ships",
    )
    parser.add_argument("--weights", help="what the system is loaded from; default: its own")
    parser.add_argument(
        "--contexts",
        type=Path,
        help="a tab-separated table for STS-B-Context; default: dev.tsv of the data folder",
    )
    parser.add_argument(
        "--columns",
        type=parse_columns,
        default=SAME,
        help="its columns, as query=NAME,context=NAME,target=NAME,score=NAME;"
        " numbers from 0 if it has no heading",
    )
    parser.add_argument("--all", action="store_true", help="every task and system available here")
    parser.add_argument(
        "--out", type=Path, default=measured.RESULTS, help="the folder of the results"
    )
    options = parser.parse_args()
    if not options.all and not options.task:
        parser.error("choose what to measure: --task NAME, or --all")
    return options


def main() -> None:
    """Run the command."""
    options = parse_arguments()
    if options.all:
        measure_all(options.data, options.out)
        return
    measure_contexts = partial(measure_stsb_context, file=options.contexts, columns=options.columns)
    evaluations = {
        **EVALUATIONS,
        "stsb-context": replace(EVALUATIONS["stsb-context"], measure=measure_contexts),
    }
    tasks = {name: evaluations[name] for name in options.task}
    for system in options.system or ["slice"]:
        measure_system(tasks, system, options.weights, options.data, options.out)


if __name__ == "__main__":
    main()
