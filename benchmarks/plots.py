"""The figures of the pages, from results/*.json: ``python -m benchmarks.plots``. Needs matplotlib, which the extra ``export`` brings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks import results
from benchmarks.quality.papers import result
from benchmarks.quality.systems.needs import library
from benchmarks.quality.systems.registry import SYSTEMS

LONGEST = results.ROOT.parent / "docs" / "longest-span.svg"


def by_longest() -> dict[str, dict[int, float]]:
    """Pearson on STS-B-Context in a single pass by the longest span in words, of every system that was measured."""
    names = {name: result("stsb-context", name) for name in SYSTEMS}
    swept = {
        name: results.newest(called)["longest"] for name, called in names.items() if results.there(called) and "longest" in results.newest(called)
    }
    return {name: {int(longest): row["pearson"] for longest, row in each.items()} for name, each in swept.items()}


def draw(curves: Mapping[str, Mapping[int, float]], path: Path) -> None:
    """A line for each system. The same figures give the same file."""
    mpl = library("matplotlib")
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = path.name
    pyplot = library("matplotlib.pyplot")
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
    draw(by_longest(), LONGEST)
