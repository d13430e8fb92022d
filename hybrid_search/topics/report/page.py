"""Render the report's page from ``page.html.jinja``, which escapes what comes from calls.

The page loads nothing. Its policy allows no script and, by its hash, the one style sheet in it.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from hybrid_search.observability.escapes import blank_controls
from hybrid_search.topics.match import Match
from hybrid_search.topics.missed_mentions import MissedMentions
from hybrid_search.topics.report.counts import (
    FEWEST_RISING,
    WEEKS_BEFORE,
    MatchCounts,
    TopicCounts,
)
from hybrid_search.topics.surroundings import Surroundings

WIDTH, HEIGHT = 340, 80
BASELINE = 1
STROKE = 2

MOST_BARS = 170
"""More columns would be thinner than a pixel of a narrow screen: neighbours are added up."""

MOST_LINES = 5
"""More lines in one plot cannot be told apart."""

MOST_PAIRS = 20
MOST_VALUES = 12
"""Rows of a table of pairs, and of one of values; the rest is added up."""

FOLDER = "hybrid_search.topics.report"

Missed = Mapping[str, MissedMentions | None]
"""How many mentions of each topic are probably below the threshold, where that is known."""


Parts = dict[str, Any]
"""A part of the page, by the names that its template uses."""

Point = tuple[float, float]
"""The x and y of a place in a plot, in units of its view box; y grows downwards."""


def lay_columns(bars: Sequence[tuple[str, int]], highest: int) -> list[Parts]:
    """Return a bar for each label with its count; one of `highest` is as high as the plot.

    A bar has its label, its count and its rectangle.
    """
    group_size = max(1, -(-len(bars) // MOST_BARS))
    if group_size > 1:
        groups = [bars[first : first + group_size] for first in range(0, len(bars), group_size)]
        bars = [(f"{rows[0][0]} to {rows[-1][0]}", sum(n for _, n in rows)) for rows in groups]
    step = WIDTH / max(len(bars), 1)
    columns = []
    for number, (label, count) in enumerate(bars):
        height = (HEIGHT - BASELINE) * count / (highest * group_size)
        place = {"x": number * step, "y": HEIGHT - BASELINE - height}
        size = {"width": max(step - 1, step * 0.7), "height": height}
        columns.append({"label": label, "count": count, **place, **size})
    return columns


def lay_lines(lines: Sequence[Sequence[int]]) -> list[list[Point]]:
    """Return the points of a line for each list of counts, the highest as high as the plot."""
    highest = max((count for counts in lines for count in counts), default=0) or 1
    bottom = HEIGHT - BASELINE - STROKE
    rise = (bottom - STROKE) / highest
    drawn = []
    for counts in lines:
        step = (WIDTH - 2 * STROKE) / max(len(counts) - 1, 1)
        points = [(STROKE + place * step, bottom - rise * n) for place, n in enumerate(counts)]
        drawn.append(points)
    return drawn


def build_page(
    counts: MatchCounts,
    sentences: Mapping[Match, Surroundings],
    origin: str,
    index: str,
    missed: Missed,
) -> str:
    """Return the page, with the sentence around each mention that is shown.

    `origin` says what the numbers come from, and `missed` how many mentions are probably missed.
    """
    return _template().render(
        counts=counts,
        weeks=counts.list_weeks(),
        trends=_plot_trends(counts),
        pairs=_list_pairs(counts),
        topics=[_describe_topic(name, counts, sentences) for name in counts.topics],
        origin=origin,
        index=index,
        missed=missed,
    )


@cache
def _template() -> Template:
    style = (files(FOLDER) / "page.css").read_text(encoding="utf-8")
    digest = hashlib.sha256(style.encode()).digest()
    environment = Environment(
        loader=PackageLoader(FOLDER, ""),
        autoescape=True,
        finalize=_show,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "HEIGHT": HEIGHT,
        "WIDTH": WIDTH,
        "fewest_rising": FEWEST_RISING,
        "style": Markup(style),  # noqa: S704 (our own file)
        "style_digest": base64.b64encode(digest).decode(),
        "weeks_before": WEEKS_BEFORE,
    }
    environment.filters |= {
        "clock": _clock,
        "percent": "{:.1%}".format,
        "tenths": "{:.1f}".format,
        "thousands": "{:,}".format,
    }
    return environment.get_template("page.html.jinja")


def _show(value: object) -> object:
    """Return text without the characters that a screen obeys; what the template made stays."""
    return value if isinstance(value, Markup) else blank_controls(str(value))


def _clock(milliseconds: int | None) -> str:
    """Return a time in a call as minutes and seconds."""
    if milliseconds is None:
        return ""
    minutes, seconds = divmod(milliseconds // 1000, 60)
    return f"{minutes}:{seconds:02d}"


def _plot_trends(counts: MatchCounts) -> Parts | None:
    """Return the plot; None if there is one week or one topic only."""
    weeks = counts.list_weeks()
    dated = [(name, topic.weeks) for name, topic in counts.topics.items() if topic.weeks]
    if len(weeks) < 2 or len(dated) < 2:
        return None
    dated.sort(key=lambda item: -item[1].total())
    lines = {name: [by_week[week] for week in weeks] for name, by_week in dated[:MOST_LINES]}
    return {
        "names": list(lines),
        "lines": lay_lines(list(lines.values())),
        "caption": _caption(counts, max(map(max, lines.values()))),
        "left_out": len(dated) - len(lines),
    }


def _caption(counts: MatchCounts, most: int) -> str:
    weeks = counts.list_weeks()
    return f"Documents by week, {weeks[0]} to {weeks[-1]}; at most {most:,} in a week"


def _list_pairs(counts: MatchCounts) -> list[tuple[str, str, int, float]]:
    calls = {name: len(topic.calls) for name, topic in counts.topics.items()}
    return [
        (first, second, count, count / min(calls[first], calls[second]))
        for (first, second), count in islice(counts.pairs.items(), MOST_PAIRS)
    ]


def _describe_topic(
    name: str, counts: MatchCounts, sentences: Mapping[Match, Surroundings]
) -> Parts:
    topic = counts.topics[name]
    bars = [(f"week from {week}", topic.weeks[week]) for week in counts.list_weeks()]
    fields = {
        field: _count_values(values, counts.values.get(field, Counter()))
        for field, values in topic.fields.items()
        if values
    }
    mentions = [
        (match, sentences.get(match, Surroundings("", match.text, "")))
        for match in topic.list_likeliest()
    ]
    return {
        "name": name,
        "counts": topic,
        "caption": _caption(counts, max(topic.weeks.values())) if topic.weeks else "",
        "columns": lay_columns(bars, counts.most_in_a_week) if topic.weeks else [],
        "speakers": _count_speakers(topic),
        "fields": fields,
        "mentions": mentions,
    }


def _count_speakers(topic: TopicCounts) -> Parts | None:
    """Return the mentions by speaker; None if no mention has a speaker."""
    if not set(topic.speakers) - {""}:
        return None
    speakers = Counter({speaker or "none": count for speaker, count in topic.speakers.items()})
    return _count_values(speakers, Counter(dict.fromkeys(speakers, topic.mentions)))


def _count_values(values: Counter[str], totals: Counter[str]) -> Parts:
    """Return the most frequent values of a field, each with its share of its own total."""
    shown = [
        (value, count, min(1.0, count / totals[value]) if totals[value] else None)
        for value, count in values.most_common(MOST_VALUES)
    ]
    rest = values.total() - sum(count for _, count, _ in shown)
    return {"shown": shown, "other_values": len(values) - len(shown), "other_count": rest}
