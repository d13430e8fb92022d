"""Compare the set-ups of STS-B-Context by Williams' test: ``python -m papers.significance``.

Every two set-ups of every system that ``python -m papers --task stsb-context`` has measured on
dev.tsv: with full context, one forward pass for each n-gram, all n-grams in a single pass.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.quality import stsb_context, williams
from benchmarks.quality.correlation import pearson
from benchmarks.quality.stsb_context import unpack_scores
from papers import measured
from papers.measured import read_measured, result_name
from papers.systems.registry import SYSTEMS

TASK = "stsb-context"
NAME = "williams"
LEFT_OUT = "target alone"
"""This set-up is given the place of the target."""


def measure(gold: list[float], scores_by_setup: dict[str, list[float]]) -> dict[str, Any]:
    """Return Pearson of each set-up, from high to low, and the test of every two.

    A test is their difference, t and the two-sided p.
    """
    correlations = {
        name: round(pearson(gold, scores), 4) for name, scores in scores_by_setup.items()
    }
    pairs = {}
    for a, b in combinations(scores_by_setup, 2):
        comparison = williams.compare(gold, scores_by_setup[a], scores_by_setup[b])
        figures = ("difference", "t", "p")
        pairs[f"{a} : {b}"] = {name: float(f"{comparison[name]:.4g}") for name in figures}
    return {
        "rows": len(gold),
        "pearson": dict(sorted(correlations.items(), key=lambda entry: -entry[1])),
        "pairs": pairs,
    }


def read_scores(folder: Path, rows: int) -> dict[str, list[float]]:
    """Return the row-by-row scores of each set-up of each system in `folder`.

    Raises:
        SystemExit: For results of another table.
    """
    scores_by_setup = {}
    for system in SYSTEMS:
        result = read_measured(TASK, system, folder) or {"setups": {}}
        for setup, setup_result in result["setups"].items():
            if setup_result["rows"] != rows:
                raise SystemExit(
                    f"{result_name(TASK, system)} has {setup_result['rows']} rows and dev.tsv"
                    f" {rows}: measure it again, with --task {TASK} --system {system}"
                )
            if setup != LEFT_OUT:
                scores_by_setup[f"{system}, {setup}"] = unpack_scores(setup_result["scores"])
    return scores_by_setup


def write(data: Path, folder: Path) -> None:
    """Compare all set-ups in `folder` and save the result there."""
    gold = [stsb_row.score for stsb_row in stsb_context.read(data / stsb_context.FILE)]
    results.write(NAME, measure(gold, read_scores(folder, len(gold))), folder)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of data sets")
    parser.add_argument(
        "--out", type=Path, default=measured.RESULTS, help="the folder of the results"
    )
    options = parser.parse_args()
    write(options.data, options.out)


if __name__ == "__main__":
    main()
