"""Do two set-ups of STS-B-Context correlate with gold equally well? ``python -m benchmarks.quality.significance [--data DIR] [--out DIR]``.

Williams' test between every two set-ups of every system that ``python -m benchmarks.quality --task stsb-context`` has measured on dev.tsv: with full
context, a forward pass for each n-gram, all n-grams in a single pass.
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
from benchmarks.quality.papers import result
from benchmarks.quality.stsb_context import unpacked
from benchmarks.quality.systems.registry import SYSTEMS

TASK = "stsb-context"
NAME = "williams"
LEFT_OUT = "target alone"
"""It is told where the target is."""

AGAINST = ("slice, sentence-wise", "slice, single pass", "all-minilm-l6-v2, per n-gram, best 30", "all-minilm-l6-v2, single pass")
"""The set-ups that the page compares all others with."""


def measure(gold: list[float], scores: dict[str, list[float]]) -> dict[str, Any]:
    """Pearson of each of the `scores`, from high to low, and for each two of them the difference, t and the two-sided p."""
    pairs = {f"{a} : {b}": williams.compare(gold, scores[a], scores[b]) for a, b in combinations(scores, 2)}
    found = {name: round(pearson(gold, held), 4) for name, held in scores.items()}
    tested = {names: {name: float(f"{each[name]:.4g}") for name in ("difference", "t", "p")} for names, each in pairs.items()}
    return {"rows": len(gold), "pearson": dict(sorted(found.items(), key=lambda each: -each[1])), "pairs": tested}


def scores(folder: Path, rows: int) -> dict[str, list[float]]:
    """The scores of each set-up of each system in `folder`, row by row. Raises SystemExit for results of another table."""
    found = {}
    for system in SYSTEMS:
        if results.called(name := result(TASK, system), folder):
            for setup, each in results.newest(name, folder)["setups"].items():
                if each["rows"] != rows:
                    raise SystemExit(f"{name} has {each['rows']} rows and dev.tsv {rows}: measure it again, with --task {TASK} --system {system}")
                if setup != LEFT_OUT:
                    found[f"{system}, {setup}"] = unpacked(each["scores"])
    return found


def write(data: Path, folder: Path) -> None:
    """Compare all that is in `folder`, and keep the result there."""
    gold = [each.score for each in stsb_context.read(data / stsb_context.FILE)]
    results.write(NAME, measure(gold, scores(folder, len(gold))), folder)


def rendered() -> str:
    """Each set-up's Pearson, and how much above or below those of `AGAINST` it is, with p."""
    held = results.newest(NAME)
    there = [name for name in AGAINST if name in held["pearson"]]
    lines = head("Pearson less that of", "Pearson", *there)
    return "\n".join(
        [*lines, *[row(name, f"{value:.3f}", *[_cell(held["pairs"], name, each) for each in there]) for name, value in held["pearson"].items()]]
    )


def _cell(pairs: dict[str, Any], name: str, against: str) -> str:
    if name == against:
        return ""
    sign, tested = (1, pairs[f"{name} : {against}"]) if f"{name} : {against}" in pairs else (-1, pairs[f"{against} : {name}"])
    shown = f"{tested['p']:.3f}" if tested["p"] >= 0.001 else "< 0.001"
    return f"{sign * tested['difference']:+.3f} (p {shown})"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of data sets")
    parser.add_argument("--out", type=Path, default=results.RESULTS, help="the folder of the results")
    options = parser.parse_args()
    write(options.data, options.out)


if __name__ == "__main__":
    main()
