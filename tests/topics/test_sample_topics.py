"""The topics of the bundled sample: valid, and found where the sample was labelled."""

from __future__ import annotations

import json

from hybrid_search import Topics
from hybrid_search.client import Client
from hybrid_search.ingest.sources.files import SAMPLE

FILE = SAMPLE.with_name("topics.yaml")
LABELS = {
    "refund": "refund request",
    "put on hold": "may I put you on hold",
    "cancellation": "cancel my contract",
}
"""The labelled topic of each topic of the file."""


def test_nineteen_of_twenty_mentions_are_where_the_topic_is_labelled(bundled: Client) -> None:
    lines = SAMPLE.with_name("topics.jsonl").read_text(encoding="utf-8").splitlines()
    labelled = {
        (row["phrase"], span["id"], span["turn"])
        for row in map(json.loads, lines)
        for span in row["spans"]
    }
    matches = list(bundled.mine(FILE))
    assert {match.topic for match in matches} == {topic.name for topic in Topics.load(FILE)}
    wrong = [
        match for match in matches if (LABELS[match.topic], match.id, match.turn) not in labelled
    ]
    assert len(matches) >= 20  # 31 were found, and one of them is wrong
    assert len(wrong) <= len(matches) / 20


def test_what_is_not_meant_is_not_mined(sample: Client) -> None:
    """Somebody of the hard sample says "I don't want a refund or anything"."""
    topics = [{"name": "refund", "phrases": ["I want a refund"], "threshold": 0.005}]
    denial = "I don't want a refund or anything"
    assert denial in {match.text for match in sample.mine(topics)}
    meant = [{**topics[0], "not": ["I do not want a refund"]}]
    assert denial not in {match.text for match in sample.mine(meant)}
