"""The topics of the bundled sample: valid, and found where the sample was labelled."""

from __future__ import annotations

import json

from hybrid_search import Topics
from hybrid_search.client import Client
from hybrid_search.ingest.sources.files import SAMPLE

FILE = SAMPLE.with_name("topics.yaml")
REFUNDS = ("refund request", "refund has not arrived")


def test_mentions_of_refunds_are_where_refunds_are_labelled(sample: Client) -> None:
    lines = SAMPLE.with_name("topics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    labelled = {
        (span["id"], span["turn"])
        for row in rows
        if row["phrase"] in REFUNDS
        for span in row["spans"]
    }
    matches = [match for match in sample.mine(FILE) if match.topic == "refund"]
    assert len(matches) >= 3
    assert {(match.id, match.turn) for match in matches} <= labelled


def test_what_is_not_meant_is_not_mined(sample: Client) -> None:
    """Somebody of the sample says "I don't want a refund or anything"."""
    topics = [{"name": "refund", "phrases": ["refund request"], "threshold": 0.1}]
    denial = "I don't want a refund or anything"
    assert denial in {match.text for match in sample.mine(topics)}
    meant = [{**topics[0], "not": ["I do not want a refund"]}]
    assert denial not in {match.text for match in sample.mine(meant)}


def test_every_topic_of_the_sample_is_found(sample: Client) -> None:
    found_topics = {match.topic for match in sample.mine(FILE)}
    assert found_topics == {topic.name for topic in Topics.load(FILE)}
