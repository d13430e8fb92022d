"""Plots in SVG, a few plain bars each; their colours are the page's."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 340, 80
BASELINE = 1
STROKE = 2
MOST_BARS = 170
"""More columns would be thinner than a pixel of a narrow screen: neighbours are added up."""

MOST_LINES = 5
"""More lines in one plot cannot be told apart."""

Bars = Sequence[tuple[str, int]]
"""Labels with their counts."""


def draw_columns(bars: Bars, title: str, highest: int) -> str:
    """Return upright bars in their order.

    Args:
        bars: What each bar says when it is pointed at, and how many it stands for.
        title: What the plot shows, for those who hear the page.
        highest: The count of a bar that is as high as the plot.
    """
    group_size = _find_group_size(bars)
    bars = _merge(bars, group_size)
    highest *= group_size
    step = WIDTH / max(len(bars), 1)
    width = max(step - 1, step * 0.7)
    shapes = []
    for number, (label, count) in enumerate(bars):
        height = (HEIGHT - BASELINE) * count / highest
        place = f'x="{number * step:.1f}" y="{HEIGHT - BASELINE - height:.1f}"'
        size = f'width="{width:.1f}" height="{height:.1f}"'
        shapes.append(f"<rect {place} {size}><title>{escape(label)}: {count:,}</title></rect>")
    line = f'<line x1="0" x2="{WIDTH}" y1="{HEIGHT - 0.5}" y2="{HEIGHT - 0.5}"/>'
    return _frame([*shapes, line], title, HEIGHT)


def draw_lines(lines: Sequence[Sequence[int]], title: str) -> str:
    """Return a line for each list of counts, the highest count as high as the plot.

    Args:
        lines: The counts of each line, at the same places; line 0 is of the class ``line-0``.
        title: What the plot shows, for those who hear the page.
    """
    highest = max((count for counts in lines for count in counts), default=0) or 1
    shapes = [f'<line x1="0" x2="{WIDTH}" y1="{HEIGHT - 0.5}" y2="{HEIGHT - 0.5}"/>']
    lowest = HEIGHT - BASELINE - STROKE
    height = (lowest - STROKE) / highest
    for number, counts in enumerate(lines):
        step = (WIDTH - 2 * STROKE) / max(len(counts) - 1, 1)
        points = " ".join(
            f"{STROKE + place * step:.1f},{lowest - height * count:.1f}"
            for place, count in enumerate(counts)
        )
        shapes.append(f'<polyline class="line-{number}" points="{points}"/>')
    return _frame(shapes, title, HEIGHT)


def draw_key(number: int) -> str:
    """Return a short piece of a line of `draw_lines`, for the legend."""
    line = f'<polyline class="line-{number}" points="0,4 30,4"/>'
    return f'<svg class="key" aria-hidden="true" viewBox="0 0 30 8">{line}</svg>'


def draw_share(share: float, title: str) -> str:
    """Return one lying bar, as long as a share from 0 to 1 of the plot."""
    bar = f'<rect x="0" y="0" width="{WIDTH * min(max(share, 0.0), 1.0):.1f}" height="8"/>'
    frame = f'<rect class="rest" x="0" y="0" width="{WIDTH}" height="8"/>'
    return _frame([frame, bar], title, 8)


def _find_group_size(bars: Bars) -> int:
    """Return how many neighbours are added up."""
    return max(1, -(-len(bars) // MOST_BARS))


def _merge(bars: Bars, size: int) -> Bars:
    if size == 1:
        return bars
    groups = [bars[first : first + size] for first in range(0, len(bars), size)]
    return [(f"{rows[0][0]} to {rows[-1][0]}", sum(count for _, count in rows)) for rows in groups]


def _frame(shapes: Sequence[str], title: str, height: int) -> str:
    box = f'viewBox="0 0 {WIDTH} {height}"'
    return f'<svg role="img" aria-label="{escape(title)}" {box}>{"".join(shapes)}</svg>'
