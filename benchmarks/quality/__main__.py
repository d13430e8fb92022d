"""``python -m benchmarks.quality [--data DIR] [--task NAME ...]``: ranking quality and the recall of the span index, to results/*.json."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import results
from benchmarks.phrases import phrases
from benchmarks.quality import recall, retrieval
from benchmarks.quality.collection import ingested
from benchmarks.quality.tasks import TASKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=results.DATA)
    parser.add_argument("--task", action="append", choices=sorted(TASKS), help="only this one; may be repeated")
    options = parser.parse_args()
    for name in options.task or TASKS:
        task = TASKS[name]
        collection = ingested(task, options.data)
        measured = retrieval.measure(collection, list(task.queries(options.data, "dev")))
        results.write(f"retrieval-{name}", {"task": name, "about": task.about, **measured})
        results.write(f"recall-{name}", {"task": name, **recall.measure(collection, phrases(options.data))})


if __name__ == "__main__":
    main()
