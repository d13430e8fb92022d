"""The figures of docs/papers.md, drawn from the results: ``python -m papers.plots``.

Needs matplotlib, which the extra ``export`` brings.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks import results
from benchmarks.libraries import import_library
from papers.measured import read_measured
from papers.systems.registry import SYSTEMS

LONGEST = results.ROOT.parent / "docs" / "longest-span.svg"


def pearson_by_longest_span() -> dict[str, dict[int, float]]:
    """Return each measured system's Pearson on STS-B-Context by the longest span in words."""
    curves = {}
    for system in SYSTEMS:
        result = read_measured("stsb-context", system)
        if result and "longest" in result:
            rows = result["longest"].items()
            curves[system] = {int(longest): figures["pearson"] for longest, figures in rows}
    return curves


def draw(curves: Mapping[str, Mapping[int, float]], path: Path) -> None:
    """Draw a line for each system; the same figures give the same file."""
    mpl = import_library("matplotlib")
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = path.name
    pyplot = import_library("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for name, curve in curves.items():
        axes.plot(list(curve), list(curve.values()), marker=".", label=name)
    axes.set_xlabel("longest span, words")
    axes.set_ylabel("Pearson, single pass")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    draw(pearson_by_longest_span(), LONGEST)
