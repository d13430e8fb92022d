"""Ranking quality: ``python -m benchmarks.quality [--task NAME ...] [--system NAME ...] [--weights PATH] [--data DIR] [--out DIR]``.

Without ``--task`` the retrieval tasks: every way of ranking, and recall of the span index. The papers' evaluations take any of their systems
(``--system``, by default the encoder that ships) from its own weights or from ``--weights``; STS-B-Context takes another table, too
(``--contexts``, ``--columns``). ``--all`` runs every row of the tables whose data and weights are at hand, and says of the other systems what they
need.
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
from benchmarks.quality.collection import ingested
from benchmarks.quality.encoders import Model
from benchmarks.quality.evaluations import EVALUATIONS, Evaluation, contexts
from benchmarks.quality.papers import result, runs
from benchmarks.quality.stsb_context import COLUMNS, SAME
from benchmarks.quality.systems import registry
from benchmarks.quality.tasks import ALL, TASKS


def ranked(names: Iterable[str], model: Model, data: Path, calls: int | None, out: Path) -> None:
    """The retrieval tasks."""
    suffix = model.suffix(calls)
    for name in names:
        task = ALL[name]
        collection = ingested(task, data, model, calls)
        measured = retrieval.measure(collection, list(task.queries(data, "dev")))
        results.write(f"retrieval{suffix}-{name}", {"task": name, "model": model.label, "about": task.about, **measured}, out)
        results.write(f"recall{suffix}-{name}", {"task": name, "model": model.label, **recall.measure(collection, phrases(data))}, out)


def evaluated(tasks: Mapping[str, Evaluation], system: str, weights: str | None, data: Path, out: Path) -> None:
    """The papers' evaluations of one system, loaded once. Raises SystemExit where something is missing."""
    loaded = registry.load(system, weights, data)
    for task, evaluation in tasks.items():
        began = time.monotonic()
        results.write(result(task, system), {"task": task, "system": system, "about": evaluation.about, **evaluation.measure(loaded, data)}, out)
        print(f"{task} by {system}: {time.monotonic() - began:.0f} s", file=sys.stderr)


def everything(model: Model, data: Path, calls: int | None, out: Path) -> None:
    """Every row of the tables that can be run here; what cannot is said."""
    for system, tasks in runs().items():
        try:
            evaluated({name: EVALUATIONS[name] for name in tasks if EVALUATIONS[name].at_hand}, system, None, data, out)
        except SystemExit as missing:
            print(f"{system}: not run: {missing}", file=sys.stderr)
    significance.write(data, out)
    ranked(ALL, model, data, calls, out)


def columns(text: str) -> dict[str, str]:
    """``query=NAME,context=NAME,...``; what is not said is called as in dev.tsv. Raises ArgumentTypeError for a column that there is none of."""
    said = dict(each.partition("=")[::2] for each in text.split(","))
    if unknown := sorted({*said} - {*COLUMNS}):
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is none of {', '.join(COLUMNS)}: give NAME=COLUMN for each, with commas between")
    return {**SAME, **said}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    encoders.add_options(parser)
    parser.add_argument("--calls", type=int, help="of calls_sgd about so many calls, of medquad so many answers, evenly spread; default: all")
    parser.add_argument("--task", action="append", choices=[*ALL, *EVALUATIONS], help="only this one; may be repeated")
    parser.add_argument("--system", action="append", choices=registry.SYSTEMS, help="of the papers' tables; default: slice, the one that ships")
    parser.add_argument("--weights", help="what the system is loaded from; default: its own")
    parser.add_argument("--contexts", type=Path, help="the table of STS-B-Context, of tabs; default: dev.tsv of the data folder")
    parser.add_argument(
        "--columns", type=columns, default=SAME, help="query=NAME,context=NAME,target=NAME,score=NAME of it; numbers without a heading"
    )
    parser.add_argument("--all", action="store_true", help="every task and system that is at hand")
    parser.add_argument("--out", type=Path, default=results.RESULTS, help="the folder of the results")
    options = parser.parse_args()
    model = encoders.chosen(options)
    if options.all:
        everything(model, options.data, options.calls, options.out)
        return
    asked = options.task or list(TASKS)
    ranked([name for name in asked if name in ALL], model, options.data, options.calls, options.out)
    shown = {
        **EVALUATIONS,
        "stsb-context": replace(EVALUATIONS["stsb-context"], measure=partial(contexts, file=options.contexts, columns=options.columns)),
    }
    papers = {name: shown[name] for name in asked if name in EVALUATIONS}
    for system in options.system or ["slice"] if papers else ():
        evaluated(papers, system, options.weights, options.data, options.out)


if __name__ == "__main__":
    main()
