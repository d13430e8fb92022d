"""The figures of the pages, from results/*.json: ``python -m benchmarks.plots``.

Needs matplotlib, which the extra ``export`` brings.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks import results
from benchmarks.quality.papers import result_name
from benchmarks.quality.systems.needs import import_library
from benchmarks.quality.systems.registry import SYSTEMS

LONGEST = results.ROOT.parent / "docs" / "longest-span.svg"


def pearson_by_longest_span() -> dict[str, dict[int, float]]:
    """Pearson on STS-B-Context in a single pass by the longest span in words, of every system that
    was measured.
    """
    names = {name: result_name("stsb-context", name) for name in SYSTEMS}
    swept = {
        name: results.read_newest(measurement)["longest"]
        for name, measurement in names.items()
        if results.has_result(measurement) and "longest" in results.read_newest(measurement)
    }
    return {
        name: {int(longest): row["pearson"] for longest, row in rows_by_length.items()}
        for name, rows_by_length in swept.items()
    }


def draw(curves: Mapping[str, Mapping[int, float]], path: Path) -> None:
    """A line for each system. The same figures give the same file."""
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
