"""The timings run on an index as the product makes it, whose vectors are cut to the model's usual
size.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks import results
from benchmarks.speed import encode, ingest, latency, models, scale, size
from hybrid_search import connect
from hybrid_search.client import Client
from hybrid_search.encoder import onnx
from hybrid_search.maintenance import plan
from tests.helpers.json_lines import write_rows


def test_every_leg_of_a_query_is_timed(sample: Client) -> None:
    measured = latency.measure(sample, "calls", ["refund request"])
    assert all(set(percentiles) == {"p50", "p95"} for percentiles in measured.values())
    assert {"BM25 leg", "span leg"} <= set(measured)
    assert all(0 < percentiles["p50"] <= percentiles["p95"] for percentiles in measured.values())


def test_ingest_is_timed_beside_its_two_parts(
    calls: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "STORE", tmp_path / "store")
    measured = ingest.measure(write_rows(tmp_path / "calls.jsonl.gz", calls[:4]), 3)
    assert measured["calls"] == 3
    assert measured["passages"] >= 3
    assert measured["its share of the encoder's own rate"] > 0
    assert (
        min(
            measured[name]
            for name in ("tokens", "ingest, s", "ingest / (e + s)", "peak memory, MB")
        )
        > 0
    )
    # in tenths: of three calls there may be none
    assert min(measured[name] for name in ("e: encoder alone, s", "s: store alone, s")) >= 0


@pytest.mark.usefixtures("_remembered_batches")
def test_a_plan_is_held_against_the_index_that_was_made(
    sample_url: str, calls: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "SECONDS", 600)  # a busy machine does not end the sample early
    monkeypatch.setattr(scale, "SAMPLES", (1000,))  # the other one would be of the same documents
    write_rows(tmp_path / "calls.jsonl", calls)
    with connect(sample_url) as client:
        index_size = size.measure(client, "calls")
    measured = scale.measure(tmp_path / "calls.jsonl", len(calls), index_size)
    assert measured["calls"] == len(calls)
    assert min(measured["others' documents"].values()) > 0
    assert measured["encoded elsewhere"]["tokens"] == 37_700  # as an ingest of them says
    assert (
        measured["encoded elsewhere"]["read and shaped, tokens/s"]
        > measured["encoded elsewhere"]["read, shaped and made ready for a server, tokens/s"]
    )
    planned = measured["plans"]["1000"]
    assert planned["documents"] == len(calls)
    assert 0.8 < planned["bytes per 1,000 words, times the measured ones"] < 1.2
    assert planned["bytes a document, times the measured ones"] == pytest.approx(
        planned["bytes per 1,000 words, times the measured ones"], abs=0.002
    )


def test_a_result_s_command_holds_no_login_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "sys.argv",
        [
            "speed",
            "--url",
            "opensearch+https://reader:secret@search.example:9200",
            "--data",
            str(tmp_path / "data"),
        ],
    )
    results.save(tmp_path / "kept.json", {})
    command = json.loads((tmp_path / "kept.json").read_text())["made"]["command"]
    assert command.endswith("--url opensearch+https:// --data data")


def test_each_way_to_encode_is_timed_in_turn_after_a_warm_up() -> None:
    batches: list[tuple[str, int]] = []
    pauses = {"a": iter([0.0, 0.02, 0.01]), "b": iter([0.0, 0.03, 0.04])}

    def make_way(name: str) -> encode.Way:
        def encode_texts(texts: Sequence[str]) -> None:
            batches.append((name, len(texts)))
            time.sleep(next(pauses[name]))

        return encode_texts

    seconds = encode.race({name: make_way(name) for name in "ab"}, ["text"] * 300, 2)
    assert batches == [("a", 256), ("b", 256), *[("a", 300), ("b", 300)] * 2]
    assert 0.01 <= seconds["a"] < seconds["b"]  # the least of each: the warm-up is not among them


def test_operations_by_hand() -> None:
    # a layer of hidden size 2 and inner size 3: 4 * 4 + 2 * 6 = 28 weights a token; two tokens are
    # four pairs, each of 2 + 2 products
    assert encode.operations([2], layers=1, hidden=2, inner=3) == 2 * (2 * 28 + 4 * 4)
    assert encode.operations([2, 1], layers=5, hidden=2, inner=3) == 2 * 5 * (3 * 28 + 5 * 4)
    assert encode._rates(2.0, 3.0, 100, 0.5) == {
        "tokens/s": 50,
        "times": 1.5,
        "share of the peak": 0.25,
    }
    # 2 operations for each of the 10.6 million weights of MiniLM's layers, and at 128 tokens some
    # 6% more for attention
    assert encode.operations([128], layers=6, hidden=384, inner=1536) / 128 == pytest.approx(
        2 * 10.6e6 * 1.056, rel=0.005
    )


def test_texts_of_like_length_fill_batches_and_texts_in_order_do_not() -> None:
    """Padding is the cost of batches in order.

    Of one long and 31 short texts each takes as many tokens as the long one.
    """
    lengths = [128, *[8] * 31, *[8] * 32]
    rows = [range(length) for length in lengths]
    ordered = [list(batch) for batch in encode.batch_in_order(rows, 0, 1024)]
    bucketed = list(onnx._batches(cast("Sequence[Any]", rows), 0, 1024))
    padded = [
        sum(len(batch) * max(map(len, batch)) for batch in batches)
        for batches in (ordered, bucketed)
    ]
    assert padded == [32 * 128 + 32 * 8, 63 * 8 + 128]


def test_results_are_found_by_their_whole_name(tmp_path: Path) -> None:
    for name in ("clusters_glove.json", "clusters_glove-large.json", "dev_a_int8_01234567.json"):
        (tmp_path / name).write_text("{}")
    assert [path.name for path in results.find_results("clusters_glove", tmp_path)] == [
        "clusters_glove.json"
    ]
    assert len(results.find_results("dev_a_int8_????????", tmp_path)) == 1


def test_a_model_is_compared_with_its_own_base() -> None:
    pair = models.Pair("small", Path("small"), "base", "base")
    seconds = {"small, int8": 2.0, "base, sentence-transformers": 5.0, "other, int8": 1.0}
    assert models._compare(pair, seconds, 1000) == {
        "tokens/s": 500,
        "base": "base",
        "base, tokens/s": 200,
        "times": 2.5,
    }
