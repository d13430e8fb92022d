"""Rules in mining, on each backend, and in all that shows matches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import Match, Matches, connect
from hybrid_search.client import Client
from tests.helpers.cli import invoke_cli

TOPICS: list[dict[str, Any]] = [
    {"name": "refund", "phrases": ["I want my money back"], "speaker": "customer"},
    {"name": "sorry", "phrases": ["I am sorry about that"]},
    {"name": "charge", "phrases": ["I was charged too much"]},
    {"name": "sorry at last", "rule": {"then": ["refund", "sorry"], "within": "3 turns"}},
    {"name": "never sorry", "rule": {"all": ["refund", {"not": "sorry"}]}},
    {"name": "soon", "rule": {"all": ["refund", "sorry"], "within": "8 s"}},
    {
        "name": "large",
        "rule": {"all": ["refund", {"topic": "charge", "amount": "> £100", "in": "first 40 %"}]},
    },
    {"name": "any", "rule": {"any": ["refund", "charge"]}},
]

CALLS = {
    "excused": [
        ("agent", "Hello there."),
        ("customer", "I want my money back."),
        ("agent", "I am sorry about that."),
    ],
    "early": [
        ("agent", "I am sorry about that."),
        ("customer", "Thanks."),
        ("customer", "I want my money back."),
        ("agent", "All right."),
    ],
    "late": [
        ("customer", "I want my money back."),
        *[("agent", "Let me look.")] * 3,
        ("agent", "I am sorry about that."),
    ],
    "large": [
        ("customer", "I was charged too much, it was £1,200."),
        ("agent", "Was it?"),
        ("customer", "Yes, and I want my money back."),
    ],
    "small": [
        ("customer", "I was charged too much, it was £12.50."),
        ("agent", "Was it?"),
        ("customer", "Yes, and I want my money back."),
    ],
    "nothing": [("agent", "Good morning.")],
}
HOLDS = {
    ("excused", "sorry at last"),
    ("excused", "soon"),  # from 4 s to 12 s
    ("early", "soon"),  # from 0 s to 12 s is not: there a turn takes 4 s
    ("large", "never sorry"),
    ("small", "never sorry"),
    ("large", "large"),
    *((name, "any") for name in CALLS if name != "nothing"),
} - {("early", "soon")}
"""The calls in which each rule holds."""


def make_document(name: str) -> dict[str, Any]:
    """Return a call whose turns take 4 seconds each."""
    turns = [
        {"speaker": speaker, "text": text, "start_ms": 4000 * place, "end_ms": 4000 * (place + 1)}
        for place, (speaker, text) in enumerate(CALLS[name])
    ]
    return {"id": name, "turns": turns, "kind": "test"}


def fill(client: Client) -> None:
    client.ingest([make_document(name) for name in CALLS], index="rules")


def list_rules(matches: list[Match]) -> list[Match]:
    return [match for match in matches if match.evidence]


def test_each_call_in_which_a_rule_holds_is_reported_once_with_its_evidence(client: Client) -> None:
    fill(client)
    matches = list(client.mine(TOPICS, index="rules"))
    found = list_rules(matches)
    assert sorted((match.id, match.topic) for match in found) == sorted(HOLDS)
    mentions = {
        (match.id, match.topic, match.start): match for match in matches if not match.evidence
    }
    for match in found:
        text = client.open_document(match.id, index="rules").text
        first = match.evidence[0]
        assert (match.start, match.end, match.text) == (first.start, first.end, first.text)
        for part in match.evidence:
            mention = mentions[match.id, part.topic, part.start]  # and so at its topic's threshold
            assert text[part.start : part.end] == part.text
            names = [item.name for item in fields(part) if item.name != "amount"]
            assert [getattr(part, name) for name in names] == [
                getattr(mention, name) for name in names
            ]
    for name, group in groupby(matches, key=lambda match: match.id):
        starts = [match.start for match in group]
        assert starts == sorted(starts), name


def test_the_probability_is_the_product_of_the_parts_and_the_amount_is_quoted(
    bundled_calls: Client,
) -> None:
    found = list_rules(list(bundled_calls.mine(TOPICS, index="rules")))
    (large,) = [match for match in found if match.topic == "large"]
    assert [part.topic for part in large.evidence] == ["charge", "refund"]
    assert [part.amount for part in large.evidence] == ["£1,200", None]
    one, other = (part.probability for part in large.evidence)
    assert large.probability == pytest.approx(one * other)
    (either,) = [match for match in found if (match.topic, match.id) == ("any", "large")]
    assert either.probability == pytest.approx(1 - (1 - one) * (1 - other))


def test_a_threshold_leaves_improbable_matches_out(bundled_calls: Client) -> None:
    rule = {"name": "all", "rule": {"all": ["refund", "charge"]}}
    (one, other) = (
        list_rules(list(bundled_calls.mine([*TOPICS[:3], rule | limit], index="rules")))
        for limit in ({}, {"threshold": 0.999})
    )
    assert [match.id for match in one] == ["large", "small"]
    assert other == []


@pytest.fixture(scope="module")
def calls_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"embedded:{tmp_path_factory.mktemp('rules')}"
    with connect(url) as client:
        fill(client)
    return url


@pytest.fixture
def bundled_calls(calls_url: str) -> Iterator[Client]:
    with connect(calls_url) as client:
        yield client


def write_topics(folder: Path) -> Path:
    path = folder / "topics.json"
    path.write_text(json.dumps(TOPICS))
    return path


def test_the_command_line_writes_rules_into_files_summary_and_report(
    calls_url: str, tmp_path: Path
) -> None:
    out, page = tmp_path / "matches.jsonl", tmp_path / "report.html"
    place = ("--topics", str(write_topics(tmp_path)), "--index", "rules", "--url", calls_url)
    done = invoke_cli("mine", *place, "--out", str(out), "--report", str(page))
    assert done.status == 0
    assert json.loads(done.stdout.splitlines()[-1])["topics"]["sorry at last"] == 1
    assert "sorry at last: 1 of 6 documents" in done.stderr
    (match,) = [item for item in Matches.load(out) if item.topic == "sorry at last"]
    assert [part.text for part in match.evidence] == [
        "I want my money back",
        "I am sorry about that",
    ]
    html = page.read_text(encoding="utf-8")
    probability = match.evidence[1].probability
    assert f"sorry, {probability:.2f}, agent, 0:08:</span> I am sorry about that" in html
    assert "£1,200:</span> I was charged too much" in html


def test_checking_topics_says_which_part_of_a_rule_decides(calls_url: str, tmp_path: Path) -> None:
    path = write_topics(tmp_path)
    words = invoke_cli("topics", "check", str(path)).stdout
    assert "sorry at last: a call that has refund, then sorry, all within 3 turns\n" in words
    assert "without" not in words
    place = ("topics", "check", str(path), "--index", "rules", "--url", calls_url)
    counted = invoke_cli(*place).stdout
    # refund is in 5 calls, sorry in 3: without sorry it would hold in 4 more
    assert (
        "all within 3 turns\n  it holds in 1 documents\n  without refund: 3\n  without sorry: 5  "
        "DECIDES\n"
    ) in counted
    rows = {row["rule"]: row for row in json.loads(invoke_cli(*place, "--json").stdout)["rules"]}
    assert rows["never sorry"]["documents"] == 2
    assert rows["never sorry"]["without"] == {"no sorry": 5}
    assert rows["any"] == {
        "rule": "any",
        "sentence": "any: a call that has refund or charge",
        "documents": 5,
        "without": {"refund": 2, "charge": 5},
        "decides": "refund",
    }


def test_a_rule_that_cannot_hold_for_want_of_times_or_speakers_is_warned_of(
    empty_memory: Client, caplog: pytest.LogCaptureFixture
) -> None:
    turns = [{"speaker": speaker, "text": text} for speaker, text in CALLS["excused"]]
    empty_memory.ingest([{"id": "untimed", "turns": turns}], index="rules")
    rules = [{"name": "bot", "rule": {"topic": "sorry", "by": "robot"}}]
    found = list_rules(list(empty_memory.mine([*TOPICS, *rules], index="rules")))
    assert [match.topic for match in found] == ["sorry at last", "any"]
    assert "rule 'soon' asks for seconds: it cannot hold in 1 documents" in caplog.text
    assert "nothing was found that 'robot' said" in caplog.text


@pytest.fixture
def empty_memory() -> Iterator[Client]:
    with connect("memory:") as client:
        yield client
