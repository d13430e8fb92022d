"""Draw the curve of a run: losses above, dev scores below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HIDDEN = {"lr", "norm", "chosen", "spearman"}


def draw(lines: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the lines of ``curve.jsonl`` into an SVG file; steps are counted through all stages."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = path.name  # the same curve gives the same file
    from matplotlib import pyplot as plt

    places = _places(lines)
    figure, (above, below) = plt.subplots(2, 1, figsize=(8, 7), sharex=True, layout="constrained")
    for kind, axes, marker in (("losses", above, ""), ("dev", below, ".")):
        points = [
            (place, line[kind]) for place, line in zip(places, lines, strict=True) if kind in line
        ]
        for name in dict.fromkeys(
            name for _, values in points for name in values if name not in HIDDEN
        ):
            steps, values = zip(
                *[(place, values[name]) for place, values in points if name in values], strict=True
            )
            axes.plot(steps, values, label=name, marker=marker)
        axes.set_ylabel("loss" if kind == "losses" else "dev score")
        axes.grid(alpha=0.3)
        if points:
            axes.legend()
    below.set_xlabel("step")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _places(lines: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the step of each line, counted on from stage to stage."""
    places: list[int] = []
    before, stage, last = 0, 1, 0
    for line in lines:
        if line["stage"] != stage:
            before, stage = before + last, line["stage"]
        last = line["step"]
        places.append(before + last)
    return places
