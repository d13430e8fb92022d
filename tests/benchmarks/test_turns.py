"""The evaluation on turns of calls: ranking by call, both BM25, the fusion, and ten turns scored by
hand.
"""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import lucene
from benchmarks.quality import turns
from benchmarks.quality.compare import compare_turns as compare_turns
from benchmarks.quality.span_scores import score_texts
from benchmarks.quality.tasks import TASKS, Query, lines
from benchmarks.quality.vectors import means
from hybrid_search import connect
from hybrid_search.search.calibration import Calibration
from tests.helpers.json_lines import write_rows
from tests.helpers.table_encoder import TableEncoder, Vector

WORDS: dict[str, Vector] = {
    "refund": (1, 0, 0),
    "money": (0.8, 0.6, 0),
    "cash": (0.6, 0.8, 0),
    "coin": (0.28, 0.96, 0),
    "rent": (0, 1, 0),
}
ENCODER = TableEncoder(WORDS)
FIVE = turns.Turns(("a0", "a1", "b0", "b1", "c0"), ("a", "a", "b", "b", "c"), (0, 1, 0, 1, 0))
QUERY = Query("q", "intent", {"a": frozenset([1]), "c": frozenset([0])})
IDEAL = 1 + 1 / math.log2(3)
"""Two calls are right."""

CALLS = {
    "one": ["Hello there.", "I want cash.", "A refund then."],
    "two": ["Hello there.", "I rent a house."],
    "three": ["Money.", "Fine."],
    "four": ["Where is it?", "A coin or so.", "Fine."],
}


def write_data(folder: Path) -> Path:
    records = (
        {"id": name, "turns": [{"text": text} for text in texts]} for name, texts in CALLS.items()
    )
    write_rows(folder / "calls_sgd/calls.jsonl.gz", records)
    queries = [
        {"id": "Refund", "texts": ["refund", "cash"], "part": "dev"},
        {"id": "Rent", "texts": ["rent"], "part": "train"},
        {"id": "Gone", "texts": ["gone"], "part": "dev"},  # no call that is there has it
    ]
    write_rows(folder / "calls_sgd/queries.jsonl", queries)
    right = ["Refund one 1", "Refund three 0", "Rent two 1", "Gone elsewhere 0"]
    lines = [f"{line} 1".replace(" ", "\t") for line in right]
    table = "\n".join(["query_id\tcall_id\tturn\trelevance", *lines, ""])
    (folder / "calls_sgd/qrels.tsv.gz").write_bytes(gzip.compress(table.encode()))
    return folder


def test_a_call_stands_where_its_best_turn_is_and_is_right_if_that_turn_is() -> None:
    # a0 (the wrong turn of a), b0, c0 (right): a gain of 1 / log2(4) at rank 3; that a1 is right
    # does not help
    scores = np.array([0.9, 0.5, 0.8, 0.0, 0.7])
    assert turns.call_ndcg(FIVE, scores, QUERY) == pytest.approx(0.5 / IDEAL)
    assert turns.call_ndcg(FIVE, scores[[1, 0, 2, 3, 4]], QUERY) == pytest.approx((1 + 0.5) / IDEAL)


def test_a_turn_that_scores_nothing_is_no_hit() -> None:
    assert turns.call_ndcg(FIVE, np.array([0.0, 0.0, 0.8, 0.0, 0.0]), QUERY, threshold=0.0) == 0
    # in the order of the calls: a0, b0, c0
    assert turns.call_ndcg(FIVE, np.zeros(5), QUERY) == pytest.approx(0.5 / IDEAL)


def test_bm25_of_the_product_stems_and_that_of_the_papers_does_not() -> None:
    texts = ["refunds are here", "a refund", "nothing", "else", "more"]
    assert np.flatnonzero(lucene.score(texts, ["Refund"])[0]).tolist() == [0, 1]
    assert np.flatnonzero(turns.okapi(texts, ["Refund"])[0]).tolist() == [1]
    # Lucene's: ln(1 + 3.5 / 2.5) * 1 / (1 + 1.2 * (.25 + .75 * 1 / 1.2)), the mean length being 6 /
    # 5 without the stop words "are" and "a"
    by_hand = math.log(2.4) / (1 + 1.2 * (0.25 + 0.75 * 1 / 1.2))
    assert lucene.score(texts, ["Refund"])[0][1] == pytest.approx(by_hand)


def test_a_span_scores_what_the_product_says() -> None:
    client = connect()
    texts = ["Hold.", "Right. I have been waiting in this queue for an hour, you know."]
    query = means(client.encoder, ["waiting on hold"])
    scores = score_texts(client.encoder, texts, query)
    for row, text in enumerate(texts):
        (best,) = client.best_spans("waiting on hold", text)
        (by_cosine,) = client.best_spans("waiting on hold", text, spans_by="cosine")
        # in int8 a text encoded beside others has vectors of another scale: up to .02 of a cosine
        assert scores.span[row, 0] == pytest.approx(best.cosine + best.prior, abs=0.02)
        assert scores.cosine[row, 0] == pytest.approx(by_cosine.cosine, abs=0.02)


def test_every_system_by_hand(tmp_path: Path) -> None:
    measured = turns.measure(ENCODER, write_data(tmp_path), Calibration())
    assert {name: measured[name] for name in ("calls", "turns", "distinct turns", "intents")} == {
        "calls": 4,
        "turns": 10,
        "distinct turns": 8,
        "intents": 1,
    }
    scores = {name: row["intents"]["Refund"] for name, row in measured["systems"].items()}
    # words: "refund" is in turn 2 of call one alone, which is not labelled: 0. "cash" is in turn 1
    # of one, which is; three is not found: 1 / ideal.
    assert scores["bm25"] == scores["bm25 by rank-bm25"] == pytest.approx(1 / IDEAL / 2, abs=1e-4)
    # spans: "refund" has 1 in one (turn 2, wrong) and .8 in three (turn 0, right). "cash" has 1 in
    # one (turn 1, right), .96 in three, .936 in four.
    assert scores["best span"] == pytest.approx((1 / math.log2(3) / IDEAL + 1) / 2, abs=1e-4)
    # one vector: to "refund" three has .8, one 1 / sqrt 5 by turn 2, which is wrong. To "cash"
    # three has .96 and one 1 / sqrt 5 by turn 1: ideal.
    assert scores["one vector a turn"] == pytest.approx((1 / IDEAL + 1) / 2, abs=1e-4)
    # fused: where BM25 finds anything it is what the spans have first already
    assert scores[turns.HYBRID] == scores["best span"]
    assert measured["differences"]["best span - one vector a turn"]["mean"] == pytest.approx(
        scores["best span"] - scores["one vector a turn"], abs=2e-4
    )


def test_without_a_calibration_one_is_fitted_on_the_train_intents(tmp_path: Path) -> None:
    measured = turns.measure(ENCODER, write_data(tmp_path))
    assert measured["calibration"]["of"] == "the train intents of these turns"


def test_two_results_are_compared_intent_by_intent(tmp_path: Path) -> None:
    measured = turns.measure(ENCODER, write_data(tmp_path), Calibration())
    assert {
        name: row["mean"] for name, row in compare_turns(measured, measured).items()
    } == dict.fromkeys(measured["systems"], 0.0)


def test_about_so_many_calls_are_read_evenly_spread(tmp_path: Path) -> None:
    ids = [
        json.loads(line.data)["id"] for line in lines(TASKS["calls_sgd"], write_data(tmp_path), 2)
    ]
    assert ids == ["one", "three"]
