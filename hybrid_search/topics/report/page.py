"""Render the report's page from ``page.html.jinja``, which escapes what comes from calls.

The page loads nothing. Its policy allows no script and, by its hash, the one style sheet in it.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from hybrid_search.observability.escapes import blank_controls
from hybrid_search.topics.call_counts import WEEK
from hybrid_search.topics.match import Match
from hybrid_search.topics.missed_mentions import MissedMentions
from hybrid_search.topics.report.counts import MatchCounts, TopicCounts
from hybrid_search.topics.surroundings import Surroundings
from hybrid_search.topics.topic_shares import GroupShare, TopicShare

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

Shares = Mapping[str, TopicShare | None]
"""The share of calls that have each topic, where that is known."""

Parts = dict[str, Any]
"""A part of the page, by the names that its template uses."""

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


def lay_columns(bars: Sequence[tuple[str, int]], highest: int) -> list[Column]:
    """Return a bar for each label with its count; one of `highest` is as high as the plot."""
    group_size = max(1, -(-len(bars) // MOST_BARS))
    if group_size > 1:
        groups = [bars[first : first + group_size] for first in range(0, len(bars), group_size)]
        bars = [(f"{rows[0][0]} to {rows[-1][0]}", sum(n for _, n in rows)) for rows in groups]
    step = WIDTH / max(len(bars), 1)
    columns = []
    for number, (label, count) in enumerate(bars):
        height = (HEIGHT - BASELINE) * count / (highest * group_size)
        top, width = HEIGHT - BASELINE - height, max(step - 1, step * 0.7)
        columns.append(Column(label, count, number * step, top, width, height))
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
    shares: Shares,
) -> str:
    """Return the page, with the sentence around each mention that is shown.

    `origin` says what the numbers come from, `missed` how many mentions are probably missed, and
    `shares` in which share of documents topics are.
    """
    topics = [_describe_topic(name, counts, sentences, shares.get(name)) for name in counts.topics]
    return _template().render(
        counts=counts,
        weeks=counts.list_weeks(),
        trends=_plot_trends(counts),
        pairs=_list_pairs(counts),
        topics=topics,
        shares=shares,
        changes=_list_changes(shares),
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
        "style": Markup(style),  # noqa: S704 (our own file)
        "style_digest": base64.b64encode(digest).decode(),
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
    name: str,
    counts: MatchCounts,
    sentences: Mapping[Match, Surroundings],
    share: TopicShare | None,
) -> Parts:
    topic = counts.topics[name]
    bars = [(f"week from {week}", topic.weeks[week]) for week in counts.list_weeks()]
    groups = share.groups if share else {}
    fields = {
        field: _count_values(values, _find_shares(groups.get(field, {})))
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
        "weeks": _find_weeks(share),
        "mentions": mentions,
    }


def _count_speakers(topic: TopicCounts) -> Parts | None:
    """Return the mentions by speaker; None if no mention has a speaker."""
    if not set(topic.speakers) - {""}:
        return None
    speakers = Counter({speaker or "none": count for speaker, count in topic.speakers.items()})
    portions = {speaker: count / topic.mentions for speaker, count in speakers.items()}
    return _count_values(
        speakers, {name: (portion, f"{portion:.1%}") for name, portion in portions.items()}
    )


def _find_shares(groups: Mapping[str, GroupShare]) -> dict[str, tuple[float, str]]:
    """Return the share of each value, as a number and in words."""
    return {value: (group.share.share, str(group.share)) for value, group in groups.items()}


def _find_weeks(share: TopicShare | None) -> Mapping[str, GroupShare]:
    """Return the shares of the weeks; none if weeks were not counted."""
    groups = share.groups if share else {}
    return next((weeks for name, weeks in groups.items() if name.startswith(WEEK)), {})


def _list_changes(shares: Shares) -> list[tuple[str, GroupShare, GroupShare]]:
    """Return the topics that changed in the latest week, with the shares of the last two weeks."""
    changes = []
    for name, share in shares.items():
        weeks = list(_find_weeks(share).values())
        if len(weeks) > 1 and weeks[-1].change:
            changes.append((name, weeks[-2], weeks[-1]))
    return changes


def _count_values(values: Counter[str], portions: Mapping[str, tuple[float, str]]) -> Parts:
    """Return the most frequent values of a field, each with its share, if that is known."""
    shown = [
        (value, count, *portions.get(value, (None, "")))
        for value, count in values.most_common(MOST_VALUES)
    ]
    rest = values.total() - sum(count for _, count, *_ in shown)
    return {"shown": shown, "other_values": len(values) - len(shown), "other_count": rest}
