"""The hard sample: its size and metadata, and queries that find what is labelled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.quality import hard_sample
from hybrid_search.client import Client

TOPICS: list[dict[str, Any]] = [
    json.loads(line) for line in hard_sample.TOPICS.read_text(encoding="utf-8").splitlines()
]


@pytest.fixture(scope="module")
def by_id(calls: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {call["id"]: call for call in calls}


def test_it_has_at_least_80_calls_of_8_to_40_turns(calls: list[dict[str, Any]]) -> None:
    assert len(calls) >= 80
    assert len({call["id"] for call in calls}) == len(calls)
    assert all(8 <= len(call["turns"]) <= 40 for call in calls)


def test_every_turn_has_a_speaker_and_times_that_run_forward(calls: list[dict[str, Any]]) -> None:
    for call in calls:
        assert {turn["speaker"] for turn in call["turns"]} == {"agent", "customer"}, call["id"]
        times = [time for turn in call["turns"] for time in (turn["start_ms"], turn["end_ms"])]
        assert times == sorted(times), call["id"]
        assert all(turn["start_ms"] < turn["end_ms"] for turn in call["turns"]), call["id"]


def test_every_call_has_the_metadata_that_one_would_filter_by(calls: list[dict[str, Any]]) -> None:
    assert all({"title", "sector", "language", "date", "agent"} <= set(call) for call in calls)
    assert min(Counter(call["sector"] for call in calls).values()) >= 8
    assert set(Counter(call["language"] for call in calls)) == {"en", "de", "es"}


def test_it_has_at_least_40_topics_each_with_calls_and_labelled_words() -> None:
    assert len(TOPICS) >= 40
    assert len({topic["phrase"] for topic in TOPICS}) == len(TOPICS)
    assert all(topic["calls"] and topic["spans"] for topic in TOPICS)


def english_calls(topic: dict[str, Any], by_id: dict[str, dict[str, Any]]) -> set[str]:
    """Return the topic's English calls: the model is English, so the others are not counted."""
    return {name for name in topic["calls"] if by_id[name]["language"] == "en"}


def recall(sample: Client, by_id: dict[str, dict[str, Any]], alpha: float) -> float:
    """Return the mean recall@10 of the English labelled calls over all topics.

    Of a topic with more than ten calls, ten can be found.
    """
    shares = []
    for topic in TOPICS:
        if labelled_ids := english_calls(topic, by_id):
            hit_ids = {hit.id for hit in sample.query(topic["phrase"], alpha=alpha)}
            shares.append(len(labelled_ids & hit_ids) / min(10, len(labelled_ids)))
    return sum(shares) / len(shares)


def test_ten_hits_hold_four_in_ten_of_the_labelled_calls(
    sample: Client, by_id: dict[str, dict[str, Any]]
) -> None:
    mean_recall = recall(sample, by_id, 0.5)
    assert mean_recall >= 0.42  # 0.439 was measured
    assert mean_recall >= 1.5 * recall(sample, by_id, 0.0)  # 0.140: what BM25 finds by itself


def overlap(a: tuple[int, int], b: tuple[int, int]) -> float:
    """Return the shared characters divided by those in either (intersection over union)."""
    shared = max(0, min(a[1], b[1]) - max(a[0], b[0]))
    union = a[1] - a[0] + b[1] - b[0] - shared
    return shared / union


def ends(span: dict[str, Any]) -> tuple[int, int]:
    return span["start"], span["end"]


def best_and_labelled(
    sample: Client, by_id: dict[str, dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield the best span and the labelled spans of each English call of each topic."""
    for topic in TOPICS:
        for name in sorted(english_calls(topic, by_id)):
            result = sample.query(topic["phrase"], where={"id": name}, spans=1)
            best = result.hits[0].spans[0]
            labelled = [span for span in topic["spans"] if span["id"] == name]
            if labelled:
                yield best.to_dict(), labelled


def test_the_best_span_of_a_labelled_call_is_often_where_the_label_is(
    sample: Client, by_id: dict[str, dict[str, Any]]
) -> None:
    pairs = list(best_and_labelled(sample, by_id))
    overlaps = [
        max(overlap(ends(best), ends(span)) for span in labelled) for best, labelled in pairs
    ]
    in_turn = [any(span["turn"] == best["turn"] for span in labelled) for best, labelled in pairs]
    # Measured: 0.113 and 0.364. Labels are clauses of ten words, best spans one to four; a turn
    # chosen by chance is right in 0.058.
    assert sum(overlaps) / len(pairs) >= 0.1
    assert sum(in_turn) / len(pairs) >= 0.33
    assert len(pairs) >= 200
