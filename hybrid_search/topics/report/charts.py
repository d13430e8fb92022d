"""Geometry of the report's plots; ``charts.html.jinja`` draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 340, 80
BASELINE = 1
STROKE = 2
MOST_BARS = 170
"""More columns would be thinner than a pixel of a narrow screen: neighbours are added up."""

MOST_LINES = 5
"""More lines in one plot cannot be told apart."""

Bars = Sequence[tuple[str, int]]
"""Labels with their counts."""

Point = tuple[float, float]
"""The x and y of a place in a plot, in units of its view box; y grows downwards."""


@dataclass(frozen=True, slots=True)
class Column:
    """An upright bar: what it says when it is pointed at, and its rectangle."""

    label: str
    count: int
    x: float
    y: float
    width: float
    height: float


def lay_columns(bars: Bars, highest: int) -> list[Column]:
    """Return upright bars side by side; one of `highest` is as high as the plot."""
    group_size = max(1, -(-len(bars) // MOST_BARS))
    bars = _merge(bars, group_size)
    step = WIDTH / max(len(bars), 1)
    width = max(step - 1, step * 0.7)
    columns = []
    for number, (label, count) in enumerate(bars):
        height = (HEIGHT - BASELINE) * count / (highest * group_size)
        top = HEIGHT - BASELINE - height
        columns.append(Column(label, count, number * step, top, width, height))
    return columns


def lay_lines(lines: Sequence[Sequence[int]]) -> list[list[Point]]:
    """Return the points of a line for each list of counts, the highest as high as the plot."""
    highest = max((count for counts in lines for count in counts), default=0) or 1
    return [_lay_line(counts, highest) for counts in lines]


def _lay_line(counts: Sequence[int], highest: int) -> list[Point]:
    bottom = HEIGHT - BASELINE - STROKE
    rise = (bottom - STROKE) / highest
    step = (WIDTH - 2 * STROKE) / max(len(counts) - 1, 1)
    return [(STROKE + place * step, bottom - rise * count) for place, count in enumerate(counts)]


def _merge(bars: Bars, size: int) -> Bars:
    if size == 1:
        return bars
    groups = [bars[first : first + size] for first in range(0, len(bars), size)]
    return [(f"{rows[0][0]} to {rows[-1][0]}", sum(count for _, count in rows)) for rows in groups]
