"""``python -m benchmarks.quality [--model DIR] [--calls N] [--task NAME ...]``: ranking quality and recall of the span index, to results/*.json."""

from __future__ import annotations

import argparse

from benchmarks import results
from benchmarks.phrases import phrases
from benchmarks.quality import encoders, recall, retrieval
from benchmarks.quality.collection import ingested
from benchmarks.quality.tasks import TASKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    encoders.add_options(parser)
    parser.add_argument("--calls", type=int, help="about so many of calls_sgd, evenly spread; default: all")
    parser.add_argument("--task", action="append", choices=sorted(TASKS), help="only this one; may be repeated")
    options = parser.parse_args()
    model = encoders.chosen(options)
    suffix = model.suffix(options.calls)
    for name in options.task or TASKS:
        task = TASKS[name]
        collection = ingested(task, options.data, model, options.calls)
        measured = retrieval.measure(collection, list(task.queries(options.data, "dev")))
        results.write(f"retrieval{suffix}-{name}", {"task": name, "model": model.label, "about": task.about, **measured})
        results.write(f"recall{suffix}-{name}", {"task": name, "model": model.label, **recall.measure(collection, phrases(options.data))})


if __name__ == "__main__":
    main()
