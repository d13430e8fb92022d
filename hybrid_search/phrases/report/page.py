"""The page of a report: everything that comes from a call is escaped, and nothing is loaded.

Its policy allows no script and only the one style sheet that is in it, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from hybrid_search.observability.escapes import blank_controls
from hybrid_search.phrases.match import Match
from hybrid_search.phrases.missed_mentions import MissedMentions
from hybrid_search.phrases.report.charts import (
    MOST_LINES,
    draw_columns,
    draw_key,
    draw_lines,
    draw_share,
)
from hybrid_search.phrases.report.counts import (
    FEWEST_RISING,
    WEEKS_BEFORE,
    MatchCounts,
    TopicCounts,
)
from hybrid_search.phrases.surroundings import Surroundings

MOST_PAIRS = 20
MOST_VALUES = 12
"""Rows of a table of pairs, and of one of values; the rest is added up."""

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1f; --paper: #fff; --soft: #5c5c66; --line: #d9d9e0;
  --bar: #2f6f9f; --mark: #ffe27a; --second: #b4520a; --third: #4a7a1e; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececf1; --paper: #17171a; --soft: #a3a3ad;
  --line: #3a3a42; --bar: #6fb1de; --mark: #6b5600; --second: #f0954a; --third: #9ccb66; } }
body { font: 16px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; } h3 { font-size: 1rem; }
a { color: var(--bar); } p, figcaption, .soft { color: var(--soft); }
polyline { fill: none; stroke: var(--bar); stroke-width: 2; stroke-linejoin: round; }
.line-1 { stroke: var(--second); stroke-dasharray: 7 3; } .line-2 { stroke: var(--third);
  stroke-dasharray: 2 3; } .line-3 { stroke: var(--ink); stroke-width: 1; }
.line-4 { stroke: var(--soft); stroke-dasharray: 10 3 2 3; }
.keys { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
.keys svg { display: inline-block; width: 30px; vertical-align: middle; }
figure { margin: 0; max-width: 42rem; } svg { display: block; width: 100%; height: auto; }
rect { fill: var(--bar); } .rest { fill: var(--line); } line { stroke: var(--soft); }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; }
th, td { padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td svg { min-width: 4rem; margin-top: .45rem; } mark { background: var(--mark); color: inherit; }
.scroll { overflow-x: auto; } .scroll td { overflow-wrap: break-word; }
th { overflow-wrap: normal; }
.mentions .document { min-width: 6rem; }
.mentions .speaker { min-width: 5rem; max-width: 12rem; overflow-wrap: break-word; }
@media (max-width: 40rem) { .mentions tr { display: block; padding: .4rem 0;
  border-bottom: 1px solid var(--line); } .mentions thead { display: none; }
  .mentions td { display: inline; border: 0; padding-right: .5rem; }
  .mentions td.words { display: block; } }
"""

Cells = Sequence[str]
"""The cells of a row of a table, in HTML."""


Missed = Mapping[str, MissedMentions | None]
"""How many mentions of each topic are probably below the threshold, where that is known."""


def build_page(
    counts: MatchCounts,
    sentences: Mapping[Match, Surroundings],
    origin: str,
    index: str,
    missed: Missed,
) -> str:
    """Return the page.

    Args:
        counts: What is counted.
        sentences: The sentence around each mention that is shown.
        origin: What the numbers come from.
        index: The name of the index.
        missed: How many mentions are probably missed.
    """
    body = [
        f"<h1>Mentions in {_text(index)}</h1>",
        f"<p>{_describe(counts)} {_text(origin)}</p>",
        *_overview(counts, missed),
        *_weeks(counts),
        *_rising(counts),
        *_pairs(counts),
    ]
    for number, (name, topic) in enumerate(counts.topics.items()):
        body += _topic_section(f"topic-{number}", name, topic, counts, sentences)
    return f'<!doctype html>\n<html lang="en">\n<head>\n{_head(index)}</head>\n<body>\n<main>\n' + (
        "\n".join(body) + "\n</main>\n</body>\n</html>\n"
    )


def _head(index: str) -> str:
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>Mentions in {_text(index)}</title>\n<style>{STYLE}</style>\n"
    )


def _describe(counts: MatchCounts) -> str:
    mentions = sum(topic.mentions for topic in counts.topics.values())
    weeks = counts.list_weeks()
    dates = f" Weeks are counted by {_text(counts.date_field)}" if counts.date_field else ""
    dates += f", from {weeks[0]} to {weeks[-1]}." if weeks else "." * bool(dates)
    undated = f" {counts.undated:,} documents have no date." if weeks and counts.undated else ""
    return (
        f"{mentions:,} mentions of {len(counts.topics):,} topics in {counts.documents:,} documents."
        f"{dates}{undated}"
    )


def _overview(counts: MatchCounts, missed: Missed) -> Iterator[str]:
    """Yield the table of all topics."""
    yield "<h2>Topics</h2>"
    rows = []
    for number, (name, topic) in enumerate(counts.topics.items()):
        share = len(topic.calls) / max(counts.documents, 1)
        rows.append(
            (
                f'<a href="#topic-{number}">{_text(name)}</a>',
                f"{topic.mentions:,}",
                f"{topic.expected:,.1f}",
                _text(missed.get(name) or "not known"),
                f"{len(topic.calls):,}",
                f"{share:.1%}",
                draw_share(share, f"{share:.1%} of all documents"),
            )
        )
    heads = ("topic", "mentions", "expected right", "missed", "documents", "share", "plot")
    yield _table(heads, rows)
    yield (
        '<p class="soft">Expected right is the sum of the probabilities. Missed is the same sum '
        "over what is below the threshold, with the interval that holds 95 of 100 times. Bars are "
        "shares, and each is as long as its column at 100 %.</p>"
    )


def _weeks(counts: MatchCounts) -> Iterator[str]:
    """Yield a plot of the topics that are in most documents, a line each, week by week."""
    weeks = counts.list_weeks()
    dated = [(name, topic) for name, topic in counts.topics.items() if topic.weeks]
    dated.sort(key=lambda item: -item[1].weeks.total())
    lines = {name: [topic.weeks[week] for week in weeks] for name, topic in dated[:MOST_LINES]}
    if len(weeks) < 2 or len(lines) < 2:
        return
    most = max(max(line) for line in lines.values())
    caption = f"Documents by week, {weeks[0]} to {weeks[-1]}; at most {most:,} in a week"
    keys = (f"<li>{draw_key(number)} {_text(name)}</li>" for number, name in enumerate(lines))
    rest = f" The {MOST_LINES} most frequent topics." if len(dated) > MOST_LINES else ""
    yield "<h2>Week by week</h2>"
    yield f"<figure>{draw_lines(list(lines.values()), caption)}"
    yield f'<figcaption>{caption}.{rest}</figcaption><ul class="keys">{"".join(keys)}</ul></figure>'


def _rising(counts: MatchCounts) -> Iterator[str]:
    if len(counts.list_weeks()) < 2:
        return
    week = counts.list_weeks()[-1]
    yield "<h2>Rising topics</h2>"
    yield (
        f"<p>Documents with a mention in the latest week, from {week}, which may be incomplete, "
        f"and in a mean week of the {WEEKS_BEFORE} before. Only topics in at least {FEWEST_RISING} "
        "documents of the latest week that are surely more frequent (95 %).</p>"
    )
    rows = [
        (_text(row.topic), f"{row.latest:,}", f"{row.before:,.2f}", f"{row.least_factor:,.1f}")
        for row in counts.list_rising()
    ]
    heads = ("topic", "latest", "before", "at least so many times")
    yield _table(heads, rows) if rows else "<p>None surely rises.</p>"


def _pairs(counts: MatchCounts) -> Iterator[str]:
    if not counts.pairs:
        return
    yield "<h2>Topics in the same document</h2>"
    rows = []
    for (first, second), count in list(counts.pairs.items())[:MOST_PAIRS]:
        rarer = min(len(counts.topics[name].calls) for name in (first, second))
        rows.append((_text(first), _text(second), f"{count:,}", f"{count / rarer:.0%}"))
    yield _table(("topic", "and", "documents", "of the rarer"), rows)


def _topic_section(
    anchor: str,
    name: str,
    topic: TopicCounts,
    counts: MatchCounts,
    sentences: Mapping[Match, Surroundings],
) -> Iterator[str]:
    yield f'<section>\n<h2 id="{anchor}">{_text(name)}</h2>'
    yield f"<p>{topic.mentions:,} mentions in {len(topic.calls):,} documents.</p>"
    weeks = counts.list_weeks()
    if topic.weeks:
        bars = [(f"week from {week}", topic.weeks[week]) for week in weeks]
        most = max(topic.weeks.values())
        caption = f"Documents by week, {weeks[0]} to {weeks[-1]}; at most {most:,} in a week"
        plot = draw_columns(bars, caption, counts.most_in_a_week)
        yield f"<figure>{plot}<figcaption>{caption}.</figcaption></figure>"
    if set(topic.speakers) - {""}:
        speakers = Counter({speaker or "none": n for speaker, n in topic.speakers.items()})
        totals = Counter(dict.fromkeys(speakers, topic.mentions))
        yield _value_table("speaker", "mentions", "of all mentions", speakers, totals)
    for field, values in topic.fields.items():
        if values:
            totals = counts.values.get(field, Counter())
            yield _value_table(field, "documents", "of its documents", values, totals)
    yield from _mention_table(topic, sentences)
    yield "</section>"


def _value_table(
    field: str, unit: str, share_unit: str, values: Counter[str], totals: Counter[str]
) -> str:
    """Return the most frequent values of a field, each with its share of its own total."""
    rows = []
    most_frequent = values.most_common(MOST_VALUES)
    for value, count in most_frequent:
        share = min(1.0, count / totals[value]) if totals[value] else None
        words = "" if share is None else f"{share:.1%}"
        bar = "" if share is None else draw_share(share, f"{words} {share_unit}")
        rows.append((_text(value), f"{count:,}", words, bar))
    rest = values.total() - sum(count for _, count in most_frequent)
    if rest:
        rows.append((f"{len(values) - len(most_frequent):,} others", f"{rest:,}", "", ""))
    table = _table((_text(field), unit, share_unit, "plot"), rows)
    return f"<h3>By {_text(field)}</h3>{table}"


def _mention_table(topic: TopicCounts, sentences: Mapping[Match, Surroundings]) -> Iterator[str]:
    mentions = topic.list_likeliest()
    if not mentions:
        return
    yield "<h3>Mentions</h3>"
    if topic.mentions > len(mentions):
        yield f"<p>The {len(mentions):,} most probable of {topic.mentions:,}.</p>"
    rows = []
    heads = ("probability", "document", "speaker", "time", "words")
    for match in mentions:
        around = sentences.get(match, Surroundings("", match.text, ""))
        marked = f"{_text(around.before)}<mark>{_text(around.text)}</mark>{_text(around.after)}"
        cells = (f"{match.probability:.2f}", match.id, match.speaker or "", _clock(match.start_ms))
        small = "".join(
            f'<td class="soft {head}">{_text(cell)}</td>'
            for head, cell in zip(heads, cells, strict=False)
        )
        rows.append(f'<tr>{small}<td class="words">{marked}</td></tr>')
    head = "".join(f"<th>{name}</th>" for name in heads)
    yield f'<table class="mentions"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
    yield "</table>"


def _clock(milliseconds: int | None) -> str:
    """Return a time in a call as minutes and seconds."""
    if milliseconds is None:
        return ""
    minutes, seconds = divmod(milliseconds // 1000, 60)
    return f"{minutes}:{seconds:02d}"


def _table(heads: Cells, rows: Iterable[Cells]) -> str:
    """Return a table; cells of digits stand on the right."""
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(map(_cell, cells))}</tr>" for cells in rows)
    # a table that is wider than a small screen is scrolled, also by keyboard
    opening = f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
    return f"{opening}<tbody>{body}</tbody></table></div>"


def _cell(html: str) -> str:
    is_number = bool(html) and not html.strip("0123456789.,%")
    return f'<td class="number">{html}</td>' if is_number else f"<td>{html}</td>"


def _text(value: object) -> str:
    """Return a text from a call, a topic or a name so that it is nothing but text."""
    return escape(blank_controls(str(value)))
