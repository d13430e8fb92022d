"""Do two set-ups of STS-B-Context correlate with gold equally well? ``python -m
benchmarks.quality.significance [--data DIR] [--out DIR]``.

Williams' test between every two set-ups of every system that ``python -m benchmarks.quality --task
stsb-context`` has measured on dev.tsv: with full context, a forward pass for each n-gram, all
n-grams in a single pass.
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
from benchmarks.quality.papers import result_name
from benchmarks.quality.stsb_context import unpack_scores
from benchmarks.quality.systems.registry import SYSTEMS

TASK = "stsb-context"
NAME = "williams"
LEFT_OUT = "target alone"
"""It is told where the target is."""

AGAINST = (
    "slice, sentence-wise",
    "slice, single pass",
    "all-minilm-l6-v2, per n-gram, best 30",
    "all-minilm-l6-v2, single pass",
)
"""The set-ups that the page compares all others with."""


def measure(gold: list[float], scores: dict[str, list[float]]) -> dict[str, Any]:
    """Pearson of each of the `scores`, from high to low, and for each two of them the difference, t
    and the two-sided p.
    """
    pairs = {
        f"{a} : {b}": williams.compare(gold, scores[a], scores[b])
        for a, b in combinations(scores, 2)
    }
    correlations = {
        name: round(pearson(gold, setup_scores), 4) for name, setup_scores in scores.items()
    }
    tested = {
        names: {name: float(f"{comparison[name]:.4g}") for name in ("difference", "t", "p")}
        for names, comparison in pairs.items()
    }
    return {
        "rows": len(gold),
        "pearson": dict(sorted(correlations.items(), key=lambda entry: -entry[1])),
        "pairs": tested,
    }


def scores(folder: Path, rows: int) -> dict[str, list[float]]:
    """The scores of each set-up of each system in `folder`, row by row.

    Raises SystemExit for results of another table.
    """
    scores_by_setup = {}
    for system in SYSTEMS:
        if results.find_results(name := result_name(TASK, system), folder):
            for setup, setup_result in results.read_newest(name, folder)["setups"].items():
                if setup_result["rows"] != rows:
                    raise SystemExit(
                        f"{name} has {setup_result['rows']} rows and dev.tsv {rows}: measure it again, with --task {TASK} --system {system}"
                    )
                if setup != LEFT_OUT:
                    scores_by_setup[f"{system}, {setup}"] = unpack_scores(setup_result["scores"])
    return scores_by_setup


def write(data: Path, folder: Path) -> None:
    """Compare all that is in `folder`, and keep the result there."""
    gold = [stsb_row.score for stsb_row in stsb_context.read(data / stsb_context.FILE)]
    results.write(NAME, measure(gold, scores(folder, len(gold))), folder)


def render_table() -> str:
    """Each set-up's Pearson, and how much above or below those of `AGAINST` it is, with p."""
    comparison = results.read_newest(NAME)
    compared_setups = [name for name in AGAINST if name in comparison["pearson"]]
    lines = head("Pearson less that of", "Pearson", *compared_setups)
    return "\n".join(
        [
            *lines,
            *[
                row(
                    name,
                    f"{value:.3f}",
                    *[_cell(comparison["pairs"], name, rival) for rival in compared_setups],
                )
                for name, value in comparison["pearson"].items()
            ],
        ]
    )


def _cell(pairs: dict[str, Any], name: str, against: str) -> str:
    if name == against:
        return ""
    sign, tested = (
        (1, pairs[f"{name} : {against}"])
        if f"{name} : {against}" in pairs
        else (-1, pairs[f"{against} : {name}"])
    )
    p_text = f"{tested['p']:.3f}" if tested["p"] >= 0.001 else "< 0.001"
    return f"{sign * tested['difference']:+.3f} (p {p_text})"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of data sets")
    parser.add_argument(
        "--out", type=Path, default=results.RESULTS, help="the folder of the results"
    )
    options = parser.parse_args()
    write(options.data, options.out)


if __name__ == "__main__":
    main()
