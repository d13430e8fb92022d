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
from benchmarks.markdown import head, row
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

AGAINST = ("slice, single pass", "all-minilm-l6-v2, single pass")
"""The set-ups that the page compares all others with."""


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


def render_table() -> str:
    """Render each set-up's Pearson and its differences from those of `AGAINST`, with p."""
    comparison = results.read_result(NAME, measured.RESULTS)
    rivals = [name for name in AGAINST if name in comparison["pearson"]]
    lines = head("Pearson less that of", "Pearson", *rivals)
    for name, value in comparison["pearson"].items():
        cells = [_cell(comparison["pairs"], name, rival) for rival in rivals]
        lines.append(row(name, f"{value:.3f}", *cells))
    return "\n".join(lines)


def _cell(pairs: dict[str, Any], name: str, rival: str) -> str:
    if name == rival:
        return ""
    forward = pairs.get(f"{name} : {rival}")
    test, sign = (forward, 1) if forward else (pairs[f"{rival} : {name}"], -1)
    p_text = f"{test['p']:.3f}" if test["p"] >= 0.001 else "< 0.001"
    return f"{sign * test['difference']:+.3f} (p {p_text})"


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
