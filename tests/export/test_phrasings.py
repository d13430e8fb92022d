"""Triples of phrasings: of intents beside requests, and of words said as they are; no torch."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from export.training import corpora, phrasings

TOPICS: list[dict[str, Any]] = [
    {
        "topic": f"{domain}-01",
        "domain": domain,
        "phrases": {"name": f"{domain} refund", "said": f"pay back the {domain}"},
        "says": [
            {
                "text": f"Well, the {domain} was bad. I want it all back.",
                "span": "I want it all back",
                "core": "it all back",
            }
        ],
        "near": [{"text": f"No money for the {domain}, please."}],
    }
    for domain in ("gym", "tax", "shoes")
]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)


def phrase(name: str, intent: str, *texts: str) -> dict[str, Any]:
    return {"set": name, "intent": intent, "phrases": dict(enumerate(texts))}


def test_phrasings_meet_requests_for_training_and_the_nearest_of_another_intent(
    tmp_path: Path,
) -> None:
    rows = [
        {"intent": intent, "text": text, "part": part}
        for intent, text, part in (
            ("lost_card", "where is my card", "train"),
            ("lost_card", "the card is gone", "train"),
            ("new_card", "where do I get a card", "train"),
            ("weather", "will it rain", "train"),
            ("new_card", "where is my card please", "dev"),
        )
    ]
    write_rows(tmp_path / "banking77" / "banking77.jsonl.gz", rows)
    written = [phrase("banking77", "lost_card", "missing card", "plastic astray")]
    triples = list(phrasings.make_requests(tmp_path, written, Random(1)))  # noqa: S311
    assert Counter(row["query"] for row in triples) == {"missing card": 2, "plastic astray": 2}
    assert {row["positive"] for row in triples} == {"where is my card", "the card is gone"}
    assert {row["negative"] for row in triples} == {"where do I get a card"}
    assert {row["intent"] for row in triples} == {"banking77.lost_card"}
    assert not any("domain" in row for row in triples)


def test_the_triples_do_not_depend_on_the_seed_of_hashes(tmp_path: Path) -> None:
    rows = [
        {"intent": intent, "text": f"{word} {thing} {intent}", "part": "train"}
        for intent in ("pay", "send", "block")
        for word in ("my", "the", "this", "one")
        for thing in ("card", "bill", "code")
    ]
    write_rows(tmp_path / "banking77" / "banking77.jsonl.gz", rows)
    program = f"""
from pathlib import Path
from random import Random
from export.training import phrasings
written = [
    {{"set": "banking77", "intent": name, "phrases": {{"name": name}}}}
    for name in ("pay", "send", "block")
]
print(list(phrasings.make_requests(Path({str(tmp_path)!r}), written, Random(1))))
"""
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1


def test_an_intent_of_triples_keeps_their_negatives_and_has_a_domain(tmp_path: Path) -> None:
    row = {"query": "q", "positive": "a room", "negative": "a car", "intent": "Hotels.Book"}
    write_rows(tmp_path / "train_triples" / "sgd.jsonl.gz", [row])
    written = [phrase("sgd", "Hotels.Book", "a bed for the night")]
    (triple,) = phrasings.make_requests(tmp_path, written, Random(1))  # noqa: S311
    assert triple == {
        "query": "a bed for the night",
        "positive": "a room",
        "negative": "a car",
        "intent": "sgd.Hotels.Book",
        "domain": "sgd.Hotels",
    }


def test_a_phrasing_is_said_word_for_word_in_a_turn_of_another_trade(tmp_path: Path) -> None:
    rows = list(phrasings.make_verbatim(TOPICS, Random(2)))  # noqa: S311
    assert len({row["query"] for row in rows}) == 6
    for row in rows:
        (topic,) = (topic for topic in TOPICS if topic["topic"] == row["intent"])
        start, end = row["span"]
        assert row["core"] == row["span"]
        assert row["positive"][start:end] in topic["phrases"].values()
        assert topic["says"][0]["text"] not in row["positive"]
        assert row["negative"] == topic["near"][0]["text"]
    path = tmp_path / "verbatim.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (corpus,) = corpora.read([path])
    first, row = corpus.triples[0], rows[0]
    assert (first.span, first.core) == (tuple(row["span"]), tuple(row["span"]))
    assert first.domain == row["domain"]


def test_a_turn_and_what_looks_like_it_stand_beside_the_same_turns_of_other_trades() -> None:
    rows = list(phrasings.make_passing(TOPICS * 5, Random(3)))  # noqa: S311
    for row in rows:
        (topic,) = (topic for topic in TOPICS if topic["topic"] == row["intent"])
        says, near = topic["says"][0]["text"], topic["near"][0]["text"]
        assert row["positive"].count(says) == row["negative"].count(near) == 1
        assert row["positive"].replace(says, "") == row["negative"].replace(near, "")
        (start, end), core = row["span"], row["core"]
        assert row["positive"][start:end] == "I want it all back"
        assert row["positive"].index(says) <= start
        assert row["positive"][slice(*core)] == "it all back"
    assert max(row["positive"].count("was bad") for row in rows) == 3


@pytest.mark.parametrize("turn", ["Hello there.", "well"])
def test_a_turn_keeps_its_words_beside_what_is_said(turn: str) -> None:
    for seed in range(20):
        text, start = phrasings.say_in_turn("a refund", turn, Random(seed))  # noqa: S311
        assert text[start : start + 8] == "a refund"
        assert turn in text


def test_the_written_phrasings_are_complete_and_differ() -> None:
    rows = phrasings.read_phrasings()
    assert len({(row["set"], row["intent"]) for row in rows}) == len(rows) == 141
    texts = [text for row in rows for text in row["phrases"].values()]
    assert all(len(row["phrases"]) == 7 for row in rows)
    assert len(set(texts)) == len(texts)
    assert all(0 < len(text.split()) <= 16 for text in texts)
