"""Topics and intents: short texts ranked for phrases, with values by hand."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.quality import hard_sample, intents, moved_queries, topics
from benchmarks.quality.hard_sample import Topic, TurnKey
from benchmarks.quality.intents import PHRASINGS, SETS, Request, draw, spell_name
from benchmarks.quality.moved_queries import move_queries
from benchmarks.quality.span_scores import score_texts
from hybrid_search.text.stems import find_matches
from tests.helpers.json_lines import write_rows
from tests.helpers.table_encoder import TableEncoder

ENCODER = TableEncoder({"refund": (1, 0, 0), "money": (0.8, 0.6, 0), "cash": (0.6, 0.8, 0)})
TURNS: dict[TurnKey, str] = {
    ("a", 0): "So money so.",
    ("a", 1): "Cash.",
    ("b", 0): "A refund.",
    ("c", 0): "Hello.",
}
SECOND, THIRD = 1 / math.log2(3), 1 / math.log2(4)
"""nDCG of a single right item at these ranks."""


def read_phrasings() -> dict[str, dict[str, list[str]]]:
    phrasings: dict[str, dict[str, list[str]]] = json.loads(PHRASINGS.read_text())["phrasings"]
    return phrasings


def test_topics_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic("refund", frozenset([("a", 1)]), frozenset("a"))
    monkeypatch.setattr(hard_sample, "read_turns", lambda: TURNS)
    monkeypatch.setattr(hard_sample, "read_topics", lambda: [topic])
    measured = topics.measure(ENCODER)
    assert [measured[name] for name in ("topics", "turns", "calls")] == [1, 4, 3]

    def read_means(system: str) -> list[float]:
        rows = measured["systems"][system]
        return [rows[items][name]["mean"] for items in ("turns", "calls") for name in rows[items]]

    # spans: 1 in b0, .8 in a0, .6 in a1: the right turn is third, its call second
    assert read_means("best span") == pytest.approx([THIRD, 1, SECOND, 1], abs=1e-4)
    # whole turns: b0 (1, 0, 1) has .71, a1 .6, a0 (.8, .6, 2) .36
    assert read_means("one vector a text") == pytest.approx([SECOND, 1, SECOND, 1], abs=1e-4)
    # words: b0 alone
    assert read_means("bm25") == [0, 0, 0, 0]


def test_feedback_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moved_queries, "TEXTS", 2)
    texts, query = list(TURNS.values()), np.array([[1, 0, 0]], dtype=np.float32)
    scores = score_texts(ENCODER, texts, query).span
    moved = move_queries(ENCODER, texts, query, scores)
    # "refund" (1, 0, 0) and "money" (.8, .6, 0) are nearest: their mean is (.9, .3, 0), as a unit
    # vector (.949, .316, 0), and halfway to it from (1, 0, 0) is (.987, .160, 0)
    assert moved[0] == pytest.approx([0.9871, 0.1602, 0], abs=6e-3)  # in codes of 8 bits


def test_labels_in_other_languages_are_cut_off() -> None:
    turns, sample_topics = hard_sample.read_turns(), hard_sample.read_topics()
    assert (len(turns), len(sample_topics)) == (1417, 46)
    assert all(topic.turns and topic.turns <= turns.keys() for topic in sample_topics)
    assert all({call for call, _ in topic.turns} <= topic.calls for topic in sample_topics)
    assert all(topic.calls <= {call for call, _ in turns} for topic in sample_topics)
    locked = next(topic for topic in sample_topics if topic.phrase == "account locked")
    assert locked.calls == {"airline-006", "bank-004", "shop-010", "telecom-007"}


def write_requests(folder: Path) -> Path:
    """Write two intents of the set of natcs_utterances, the first with two requests."""
    texts = [("cash", "GetQuote"), ("refund", "FindATM"), ("so money so", "GetQuote")]
    rows = [{"text": text, "intent": intent} for text, intent in texts]
    write_rows(folder / "natcs_utterances/utterances.jsonl", rows)
    return folder


def test_intents_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "natcs_utterances"
    phrasings = {name: {"GetQuote": ["money", "refund"], "FindATM": ["refund", "cash"]}}
    phrasings_file = tmp_path / "phrasings.json"
    phrasings_file.write_text(json.dumps({"phrasings": phrasings}))
    monkeypatch.setattr(intents, "PHRASINGS", phrasings_file)
    monkeypatch.setattr(intents, "SETS", {name: SETS[name]})
    measured = intents.measure(ENCODER, write_requests(tmp_path))["sets"][name]
    assert (measured["requests"], measured["intents"]) == (3, 2)

    def read_means(wording: str, system: str) -> list[float]:
        row: dict[str, Any] = measured["wordings"][wording][system]
        return [row["map"]["mean"], row["r-precision"]["mean"]]

    # FindATM, "refund": its only request is first. GetQuote, "money": first and second, with 1 and
    # .96 against .8
    assert read_means("other words", "best span") == [1.0, 1.0]
    # FindATM, "cash": with .6 behind 1 and .96, so 1/3 and 0. GetQuote, "refund": second and third
    # with .8 and .6, so (1/2 + 2/3) / 2 and 1/2
    expected = [(1 / 3 + 7 / 12) / 2, 0.25]
    assert read_means("words that nobody says", "best span") == pytest.approx(expected, abs=1e-4)
    # by words "money" is in one of two requests of GetQuote, and "refund" is all of FindATM's
    assert read_means("other words", "bm25") == [0.75, 0.75]


def test_only_intents_that_no_model_is_trained_on(tmp_path: Path) -> None:
    parts = {"yes": "train", "no": "dev"}
    rows = [{"text": text, "intent": text, "part": part} for text, part in parts.items()]
    write_rows(tmp_path / "clinc150/clinc150.jsonl.gz", rows)
    assert intents.read(tmp_path, "clinc150") == [Request("no", "no")]


def test_the_same_requests_are_drawn_in_any_order() -> None:
    requests = [Request(f"request {number}", "ab"[number % 2]) for number in range(20)]
    drawn = draw(requests, most=3)
    assert draw(requests[::-1], most=3) == drawn
    assert [request.intent for request in drawn] == list("aaabbb")
    assert set(draw(requests, most=30)) == set(requests)


@pytest.mark.parametrize(
    ("intent", "words"),
    [("FindATM", "find atm"), ("lost_or_stolen_card", "lost or stolen card"), ("w2", "w2")],
)
def test_names_become_words(intent: str, words: str) -> None:
    assert spell_name(intent) == words


def test_rare_words_share_no_stem_with_the_name() -> None:
    shared = {
        intent: common
        for phrasings in read_phrasings().values()
        for intent, (_, rare_words) in phrasings.items()
        if (common := find_matches(rare_words, spell_name(intent)))
    }
    assert not shared


def test_no_two_intents_of_a_set_are_phrased_alike() -> None:
    for phrasings in read_phrasings().values():
        texts = [text for pair in phrasings.values() for text in pair]
        assert len(set(texts)) == 2 * len(phrasings)


def test_an_unknown_measure_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks.quality", "--only", "topics,topic"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "no measure 'topic': choose from retrieval, localisation, topics" in result.stderr
