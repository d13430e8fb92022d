"""The report of a run: its counts, and a page that is nothing but a page whatever was said."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import Match, connect
from hybrid_search.search.hit import DocumentView, TurnPlace
from hybrid_search.topics.missed_mentions import MissedMentions
from hybrid_search.topics.report.counts import (
    SHOWN_MENTIONS,
    count_matches,
    find_date_field,
)
from hybrid_search.topics.report.page import (
    MOST_BARS,
    MOST_LINES,
    WIDTH,
    build_page,
    lay_columns,
    lay_lines,
)
from hybrid_search.topics.shares import Share
from hybrid_search.topics.surroundings import Surroundings, read_sentence
from hybrid_search.topics.topic_shares import GroupShare, TopicShare
from tests.helpers.cli import CommandResult, invoke_cli

MONDAY = date(2026, 3, 2)


def make_match(call: int, topic: str = "refund", day: int | None = None, **metadata: Any) -> Match:
    dated = {} if day is None else {"date": str(MONDAY + timedelta(days=day))}
    return Match(
        topic, "x", f"call-{call}", 0, "agent", 3, 9, "abcdef", 0.5, 0.5, None, None,
        {**dated, **metadata}, "m",
    )  # fmt: skip


# The counts


def test_documents_count_once_in_their_week_and_mentions_each() -> None:
    matches = [
        make_match(1, day=0),
        make_match(1, day=0),
        make_match(2, day=6),
        make_match(3, day=14),
    ]
    counts = count_matches([*matches, make_match(4)], ["refund", "hold"], 10, "date")
    refund = counts.topics["refund"]
    assert (refund.mentions, len(refund.calls), refund.expected) == (5, 4, 2.5)
    assert refund.weeks == {MONDAY: 2, MONDAY + timedelta(days=14): 1}
    assert counts.list_weeks() == [MONDAY + timedelta(days=7 * number) for number in range(3)]
    assert counts.undated == 1
    assert counts.topics["hold"].mentions == 0


def test_fields_are_counted_by_their_values() -> None:
    matches = [
        make_match(1, product={"name": "a"}, tags=["x", "y", "x"]),
        make_match(2, product={"name": "a"}, tags=[]),
        make_match(3, paid=True),
    ]
    counts = count_matches(matches, ["refund"], 3, None, ["product.name", "tags", "paid"])
    fields = counts.topics["refund"].fields
    assert fields == {"product.name": {"a": 2}, "tags": {"x": 1, "y": 1}, "paid": {"True": 1}}


def test_topics_in_the_same_documents_are_counted() -> None:
    matches = [make_match(1), make_match(1, "hold"), make_match(2), make_match(2, "hold")]
    counts = count_matches([*matches, make_match(1, "late")], ["refund", "hold", "late"], 5, None)
    assert counts.pairs == {("refund", "hold"): 2, ("refund", "late"): 1, ("hold", "late"): 1}


def test_the_most_probable_mentions_are_shown_and_of_equal_ones_the_first() -> None:
    matches = [replace(make_match(number), probability=number % 10 / 10) for number in range(200)]
    shown = count_matches(matches, ["refund"], 200, None).topics["refund"].list_likeliest()
    expected = sorted(matches, key=lambda match: -match.probability)[:SHOWN_MENTIONS]
    assert shown == expected


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"sector": "shop", "spoken": "2026-01-02"}, "spoken"),
        ({"a": "2026-01-02", "date": "2026-01-02"}, "date"),
        ({"a": "2026-01-02", "call_date": "2026-01-02T10:00:00Z"}, "call_date"),
        ({"date": "tomorrow", "n": 20260102}, None),
        ({"date": "2026-13-45"}, None),
        ({}, None),
    ],
)
def test_the_field_with_dates_is_recognised(metadata: dict[str, Any], field: str | None) -> None:
    assert find_date_field([make_match(1, **metadata)]) == field


def test_a_line_goes_up_with_its_counts_and_stays_in_the_plot() -> None:
    first, second = lay_lines([[0, 4, 2], [1, 0, 0]])
    heights = [y for _, y in first]
    assert heights[0] > heights[2] > heights[1] >= 0
    assert heights[2] == pytest.approx((heights[0] + heights[1]) / 2)
    assert len(second) == 3


def test_the_most_frequent_topics_are_lines_of_one_plot() -> None:
    matches = [
        make_match(number, f"topic {topic}", 7 * number)
        for topic in range(7)
        for number in range(topic + 1)
    ]
    topics = [f"topic {topic}" for topic in range(7)]
    page = build_page(
        count_matches(matches, topics, 9, "date"), {}, "Index calls.", "calls", {}, {}
    )
    (keys,) = re.findall(r'<ul class="keys">(.*?)</ul>', page)
    assert re.findall(r"topic \d", keys) == [f"topic {topic}" for topic in (6, 5, 4, 3, 2)]
    assert "The 5 most frequent topics." in page
    assert keys.count("<polyline") == MOST_LINES


def test_a_single_week_is_no_line() -> None:
    matches = [make_match(1, name, 0) for name in "ab"]
    page = build_page(
        count_matches(matches, ["a", "b"], 9, "date"), {}, "Index calls.", "calls", {}, {}
    )
    assert "Week by week" not in page


# The sentence around


def make_view(*turns: str) -> DocumentView:
    text, places = "\n".join(turns), []
    for number, turn in enumerate(turns):
        start = sum(len(earlier) + 1 for earlier in turns[:number])
        places.append(TurnPlace(number, start, start + len(turn)))
    return DocumentView("a", text, places, {})


def find_words(view: DocumentView, words: str) -> Match:
    start = view.text.index(words)
    return replace(make_match(1), start=start, end=start + len(words), text=words)


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        ("my money", "I want ", " back."),
        ("Hello", "", " there."),
        ("no more. Not", "Really ", " even one!"),
    ],
)
def test_the_sentence_ends_where_sentences_and_turns_end(
    words: str, before: str, after: str
) -> None:
    view = make_view("Hello there. I want my money back. Now", "Really no more. Not even one! Yes")
    assert read_sentence(view, find_words(view, words)) == Surroundings(before, words, after)


def test_a_long_sentence_is_cut_and_a_changed_document_has_none() -> None:
    view = make_view("so " * 500 + "refund" + " and" * 500)
    around = read_sentence(view, find_words(view, "refund"))
    assert len(str(around)) < 420
    assert around.before.startswith("… so")
    assert around.after.endswith("and…")
    changed = replace(find_words(view, "refund"), text="credit")
    assert read_sentence(view, changed) == Surroundings("", "credit", "")


def test_the_share_of_a_value_is_of_the_documents_with_that_value() -> None:
    matches = [make_match(number, sector=sector) for number, sector in enumerate(["bank", "shop"])]
    groups = {
        "sector": {
            "bank": GroupShare(Share(0.5, 0.4, 0.6, 4, 0)),
            "shop": GroupShare(Share(0.25, 0.2, 0.3, 20, 2)),
        }
    }
    share = TopicShare(Share(0.3, 0.2, 0.4, 24, 2), 7, groups)
    counts = count_matches(matches, ["refund"], 24, None, ["sector"])
    page = build_page(counts, {}, "Index calls.", "calls", {}, {"refund": share})
    (table,) = re.findall(r"<h3>By sector</h3>.*?</table>", page, re.DOTALL)
    words = re.findall(r'<td class="number">([\d.]+% .*?)</td>', table)
    assert words == ["50.0% (40.0% to 60.0%)", "25.0% (20.0% to 30.0%)"]
    lengths = [float(width) for width in re.findall(r'<rect x="0" y="0" width="([\d.]+)"', table)]
    assert lengths == [0.5 * WIDTH, 0.25 * WIDTH]
    assert (
        "It is in 30.0% (20.0% to 40.0%) of calls (by 2 answers; 7 more would halve that)." in page
    )


def test_only_a_sure_change_of_the_latest_week_is_listed() -> None:
    matches = [make_match(day, topic, day) for topic in ("refund", "hold") for day in (0, 7)]
    share = Share(0.3, 0.2, 0.4, 50, 0)
    shares = {
        name: TopicShare(
            share,
            None,
            {
                "week of date": {
                    "2026-03-02": GroupShare(share),
                    "2026-03-09": GroupShare(share, change),
                }
            },
        )
        for name, change in (("refund", "more"), ("hold", ""))
    }
    counts = count_matches(matches, ["refund", "hold"], 100, "date")
    page = build_page(counts, {}, "Index calls.", "calls", {}, shares)
    (changes,) = re.findall(r"<h2>Changes</h2>.*?</table>", page, re.DOTALL)
    assert re.findall(r"<tr><td>(\w+)</td>", changes) == ["refund"]
    assert "<td>more</td>" in changes
    assert page.count("<h3>By week</h3>") == 2


def test_columns_of_all_topics_have_one_scale() -> None:
    matches = [make_match(number, "hold", day=0) for number in range(8)]
    matches += [make_match(number, day=7) for number in range(2)]
    counts = count_matches(matches, ["refund", "hold"], 10, "date")
    page = build_page(counts, {}, "Index calls.", "calls", {}, {})
    heights = [float(height) for height in re.findall(r'height="([\d.]+)"><title>week', page)]
    highest = max(heights)
    assert sorted(heights) == [0, 0, pytest.approx(highest / 4, abs=0.1), highest]


def test_the_page_says_what_is_missed_and_what_gave_the_probabilities() -> None:
    counts = count_matches([make_match(1)], ["refund", "hold"], 10, None)
    missed = {"refund": MissedMentions(12.3, (4.0, 31.0)), "hold": None}
    page = build_page(counts, {}, "Probabilities: tuned <by> 120.", "calls", missed, {})
    assert "<td>12 (4 to 31)</td>" in page
    assert "<td>not known</td>" in page
    assert "tuned &lt;by&gt; 120." in page


# The page

HOSTILE = '</table><script>alert(1)</script><img src=x onerror="alert(2)">\u202e&amp; "quoted"'


class Reader(HTMLParser):
    """Collects tags, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture
def hostile_url(tmp_path: Path) -> Iterator[str]:
    url = f"embedded:{tmp_path / 'store'}"
    with connect(url) as client:
        client.ingest(
            [
                {
                    "id": f"{HOSTILE} {number}",
                    "turns": [
                        {"speaker": HOSTILE, "text": f"{HOSTILE} I want my money back {HOSTILE}"}
                    ],
                    "date": str(MONDAY + timedelta(days=3 * number)),
                    "sector": HOSTILE,
                }
                for number in range(9)
            ]
        )
    topic = {"name": HOSTILE, "phrases": ["I want my money back"], "threshold": 0.05}
    (tmp_path / "topics.json").write_text(json.dumps([topic]))
    yield url


def mine(url: str, *options: str) -> CommandResult:
    return invoke_cli(
        "mine", "--topics", "topics.json", "--url", url, "--out", "matches.jsonl", *options
    )


def test_what_was_said_is_only_text_and_nothing_is_loaded(hostile_url: str) -> None:
    assert mine(hostile_url, "--report", "report.html", "--by", "sector").status == 0
    page = Path("report.html").read_text()
    assert stat.S_IMODE(Path("report.html").stat().st_mode) == 0o600
    reader = Reader(page)
    assert reader.open == []
    names = {tag for tag, _ in reader.tags}
    assert not names & {"script", "img", "link", "iframe", "object", "form", "base", "image", "use"}
    attributes = [pair for _, values in reader.tags for pair in values.items()]
    assert not [name for name, _ in attributes if name.startswith("on") or name in ("src", "style")]
    assert all((value or "").startswith("#") for name, value in attributes if name == "href")
    assert "url(" not in page
    assert "@import" not in page
    text = " ".join("".join(reader.text).split())
    visible = HOSTILE.replace("\u202e", " ")
    assert "\u202e" not in page
    assert text.count(visible) >= 9 * 3  # ids, speakers and names of topics
    marks = re.findall("<mark>(.*?)</mark>", page)
    assert len(marks) >= 9
    assert any("money back" in mark for mark in marks)
    assert page.count("<title>week from") >= 2


def test_the_policy_allows_the_one_style_sheet_and_no_script(hostile_url: str) -> None:
    mine(hostile_url, "--report", "report.html")
    page = Path("report.html").read_text()
    (style,) = re.findall("<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = re.findall('Content-Security-Policy" content="(.*?)"', page)
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert page.index("Content-Security-Policy") < page.index("<style>")
    assert "prefers-color-scheme: dark" in style
    assert 'name="viewport"' in page


def test_the_numbers_of_the_page_are_those_of_the_run(sample_url: str, tmp_path: Path) -> None:
    topics = [
        {"name": "refund", "phrases": ["I want my money back"], "threshold": 0.05},
        {"name": "none", "phrases": ["the zebra plays chess"], "threshold": 0.999},
    ]
    (tmp_path / "topics.json").write_text(json.dumps(topics))
    result = mine(sample_url, "--report", "report.html", "--by", "sector", "--date", "date")
    page = Path("report.html").read_text()
    count = result.json["topics"]["refund"]
    assert f"<p>{count} mentions of 2 topics in 88 documents. Weeks are counted by date" in page
    calls = {json.loads(line)["id"] for line in Path("matches.jsonl").read_text().splitlines()}
    assert f"<p>{count} mentions in {len(calls)} documents. It is in " in page
    share = result.json["shares"]["refund"]
    assert f"{share['share']:.1%} ({share['low']:.1%} to {share['high']:.1%})" in page
    assert share["calls"] == 88
    assert sum(row["calls"] for row in share["by"]["sector"].values()) == 88
    assert sum(row["calls"] for row in share["by"]["week of date"].values()) == 88
    assert "<p>0 mentions in 0 documents. It is in " in page
    assert "<h3>By sector</h3>" in page
    assert "<h3>By speaker</h3>" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--report", "matches.jsonl"], "--report and --out are both matches.jsonl"),
        (["--report", "no/such/report.html"], "there is no folder for the report"),
        (["--report", "r.html", "--by", "sektor"], "calls cannot be counted by 'sektor'"),
        (["--report", "r.html", "--date", "when"], "calls cannot be counted by 'when'"),
        (["--report", "r.html", "--format", "csv"], "--report is made from a file of matches"),
    ],
)
def test_a_wrong_command_is_one_line(hostile_url: str, options: list[str], message: str) -> None:
    assert message in mine(hostile_url, *options).error
    assert not Path("r.html").exists()


def test_no_column_is_thinner_than_a_screen_can_show() -> None:
    columns = lay_columns([(f"week {number}", 1) for number in range(1000)], 1)
    assert 0 < len(columns) <= MOST_BARS
    assert sum(column.count for column in columns) == 1000
    assert lay_columns([], 1) == []
