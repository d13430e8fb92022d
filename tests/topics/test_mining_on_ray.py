"""Mining by the actors of a Ray cluster, on two workers on this machine: ``make test-ray``.

The matches are the same as without Ray, in the same order, whatever dies.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.ingest.sources.files import read
from hybrid_search.topics import blocks
from tests.conftest import HARD_CALLS
from tests.helpers.cli import invoke_cli, run_cli
from tests.helpers.ray_cluster import WORKERS, wait_for_processes

TOPICS: list[dict[str, Any]] = [
    {"name": "refund", "phrases": ["I want my money back"], "threshold": 0.01},
    {"name": "hold", "phrases": ["may I put you on hold"], "threshold": 0.1},
]
TOPICS_FILE = Path(__file__).parents[2] / "hybrid_search" / "sample" / "topics.yaml"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with connect(f"embedded:{tmp_path_factory.mktemp('store')}", device="cpu") as client:
        client.ingest_lines(read([str(HARD_CALLS)]))
        yield client


@pytest.mark.ray
def test_the_matches_are_those_of_one_process(cluster: Any, client: Client) -> None:
    expected = list(client.mine(TOPICS))
    assert {match.topic for match in expected} == {"refund", "hold"}
    assert list(client.mine(TOPICS, engine="ray", workers=WORKERS)) == expected


@pytest.mark.ray
def test_a_worker_that_is_killed_costs_no_match(
    cluster: Any, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_PASSAGES", 4)
    expected = list(client.mine(TOPICS))
    wait_for_processes("ScoringWorker", 0)
    mined_blocks = client.mine_blocks(TOPICS, engine="ray", workers=WORKERS)
    matches = list(next(mined_blocks).matches)
    os.kill(wait_for_processes("ScoringWorker")[0], signal.SIGKILL)
    matches += [match for block in mined_blocks for match in block.matches]
    assert matches == expected


@pytest.mark.ray
def test_a_run_that_is_broken_off_frees_the_cores(cluster: Any, client: Client) -> None:
    mined_blocks = client.mine_blocks(TOPICS, engine="ray", workers=WORKERS)
    next(mined_blocks)
    del mined_blocks
    assert len(list(client.mine(TOPICS, engine="ray", workers=WORKERS))) > 0


@pytest.mark.ray
def test_the_command_writes_the_same_file(cluster: Any) -> None:
    assert run_cli("ingest", "--url", "embedded:store").status == 0
    options = ("--topics", str(TOPICS_FILE), "--url", "embedded:store")
    assert invoke_cli("mine", *options, "--out", "local.jsonl").status == 0
    ran = run_cli("mine", *options, "--engine", "ray", "--workers", "1", "--out", "ray.jsonl")
    assert ran.status == 0, ran.stderr
    assert ran.json["documents"] == 100
    assert Path("ray.jsonl").read_bytes() == Path("local.jsonl").read_bytes() != b""


@pytest.mark.parametrize(
    ("engine", "workers", "message"),
    [
        ("spark", None, "engine 'spark' is not one of local, ray"),
        ("local", 2, "engine 'local' takes no workers, but 2 were requested"),
    ],
)
def test_an_engine_that_is_none_is_refused(engine: str, workers: int | None, message: str) -> None:
    with connect("memory:") as client, pytest.raises(UsageError, match=message):
        next(client.mine(TOPICS, engine=engine, workers=workers))
