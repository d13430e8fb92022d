"""The timings run on an index as the product makes it, whose vectors are cut to the model's usual size."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import results
from benchmarks.speed import ingest, latency
from hybrid_search.client import Client


def test_every_leg_of_a_query_is_timed(sample: Client) -> None:
    measured = latency.measure(sample, "calls", ["refund request"])
    assert all(set(each) == {"p50", "p95"} for each in measured.values())
    assert {"BM25 leg", "span leg"} <= set(measured)
    assert all(0 < each["p50"] <= each["p95"] for each in measured.values())


def test_ingest_is_timed_beside_its_two_parts(calls: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "STORE", tmp_path / "store")
    with gzip.open(tmp_path / "calls.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(call) + "\n" for call in calls[:4])
    measured = ingest.measure(tmp_path / "calls.jsonl.gz", 3)
    assert measured["calls"] == 3
    assert measured["passages"] >= 3
    assert measured["its share of the encoder's own rate"] > 0
    assert min(measured[name] for name in ("tokens", "ingest, s", "ingest / (e + s)", "peak memory, MB")) > 0
    assert min(measured[name] for name in ("e: encoder alone, s", "s: store alone, s")) >= 0  # in tenths: of three calls there may be none


def test_a_result_s_command_holds_no_login_and_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["speed", "--url", "opensearch+https://reader:secret@search.example:9200", "--data", str(tmp_path / "data")])
    results.save(tmp_path / "kept.json", {})
    command = json.loads((tmp_path / "kept.json").read_text())["made"]["command"]
    assert command.endswith("--url opensearch+https:// --data data")
