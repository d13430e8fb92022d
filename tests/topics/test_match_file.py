"""Files of matches: three forms of the same, and nothing lost or doubled by a kill."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from hybrid_search import Match, Matches, Topics
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.topics import run
from hybrid_search.topics.match import Evidence
from hybrid_search.topics.match_file import MatchFile, to_jsonl
from hybrid_search.topics.types import MinedBlock
from tests.helpers.cli import invoke_cli

TOPICS = Topics.load(
    [
        {"name": "refund", "phrases": ["I want my money back"], "threshold": 0.005},
        {"name": "hold", "phrases": ["waiting on hold"], "threshold": 0.005},
    ]
)


def make_match(number: int) -> Match:
    return Match(
        topic="refund",
        phrase="money back",
        id=f"call-{number}",
        turn=1,
        speaker=None,
        start=2,
        end=9,
        text=f'said "no",\nline {number} é',
        cosine=0.5,
        probability=0.25,
        start_ms=None,
        end_ms=7,
        metadata={"sector": "shop", "tags": ["a", number]},
        model="m",
        evidence=(Evidence("hold", 1, None, 2, 9, "é", 0.5, None, 7, "£5"),) * (number % 2),
    )


def make_block(number: int) -> MinedBlock:
    matches = [make_match(3 * number + part) for part in range(3)]
    return MinedBlock(matches, number + 1, number + 5, 0, number)


BLOCKS = [make_block(number) for number in range(6)]


NESTED = ("metadata", "evidence")
"""The columns that are JSON in a table."""


class KilledError(Exception):
    """Stands for the end of a process."""


class Mine:
    """Yields `BLOCKS` behind a position, up to a block at which the process is killed."""

    def __init__(self, killed_at: int | None = None) -> None:
        self._killed_at = killed_at

    def __call__(self, after: Any) -> Iterator[MinedBlock]:
        first = 0 if after is None else after + 1
        for number in range(first, len(BLOCKS)):
            if number == self._killed_at:
                raise KilledError
            block = BLOCKS[number]
            yield MinedBlock(
                block.matches, block.documents - first, block.passages - first, 0, block.position
            )


def read_rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        rows = parquet.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    else:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{**row, **{name: json.loads(row[name]) for name in NESTED}} for row in rows]


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("killed_at", range(len(BLOCKS)))
def test_after_a_kill_at_any_block_the_same_command_completes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, killed_at: int
) -> None:
    monkeypatch.setattr("hybrid_search.topics.match_file.CHECKPOINT_SECONDS", 0)
    path = tmp_path / f"matches.{name}"
    with pytest.raises(KilledError), MatchFile(path, name, "run") as file:
        run.write_file(Mine(killed_at), file, TOPICS, lambda _: None)
    unfinished = tmp_path / (f"{path.name}.part" if name == "parquet" else path.name)
    with unfinished.open("ab") as rest:  # written, but the checkpoint does not tell of it
        rest.write(b'{"topic": "half a li')
    with MatchFile(path, name, "run") as file:
        summary = run.write_file(Mine(), file, TOPICS, lambda _: None)
    expected = [match.to_dict() for block in BLOCKS for match in block.matches]
    rows = read_rows(path)
    if name == "csv":  # where all is text
        texts = [
            {key: "" if value is None else value for key, value in row.items()} for row in expected
        ]
        expected = [
            {key: value if key in NESTED else str(value) for key, value in row.items()}
            for row in texts
        ]
    assert rows == expected
    assert summary.resumed == killed_at
    assert summary.to_dict()["documents"] == len(BLOCKS)
    assert summary.to_dict()["topics"] == {"refund": 18, "hold": 0}
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


def test_another_run_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid_search.topics.match_file.CHECKPOINT_SECONDS", 0)
    path = tmp_path / "matches.jsonl"
    with pytest.raises(KilledError), MatchFile(path, "jsonl", "run") as file:
        run.write_file(Mine(3), file, TOPICS, lambda _: None)
    with MatchFile(path, "jsonl", "another run") as file:
        summary = run.write_file(Mine(), file, TOPICS, lambda _: None)
    assert summary.resumed == 0
    assert len(read_rows(path)) == 18


def test_the_key_of_a_run_changes_with_the_topics_and_the_place() -> None:
    keys = {
        run.make_run_key(TOPICS, "calls"),
        run.make_run_key(TOPICS, "other"),
        run.make_run_key(TOPICS.select(["hold"]), "calls"),
    }
    assert len(keys) == 3
    assert run.make_run_key(TOPICS, "calls") in keys


def test_a_file_that_is_no_checkpoint_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "matches.jsonl.checkpoint").write_text("[]")
    with pytest.raises(UsageError, match=r"is not a checkpoint: remove it, or name another file"):
        MatchFile(tmp_path / "matches.jsonl", "jsonl", "run")


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "private").write_text("mine")
    (tmp_path / "matches.jsonl").symlink_to(tmp_path / "private")
    with pytest.raises(UsageError, match="cannot be written"):
        MatchFile(tmp_path / "matches.jsonl", "jsonl", "run")
    assert (tmp_path / "private").read_text() == "mine"


SLOW_RUN = """
import sys, time
from pathlib import Path
import hybrid_search
from hybrid_search.topics import blocks, match_file, run
from tests.topics.test_match_file import TOPICS
blocks.BLOCK_PASSAGES = 4
match_file.CHECKPOINT_SECONDS = 0
url, path = sys.argv[1:]
with hybrid_search.connect(url) as client:
    mine = lambda after: client.mine_blocks(TOPICS, after=after)
    with match_file.MatchFile(Path(path), "jsonl", "run") as file:
        print("begun", flush=True)
        run.write_file(mine, file, TOPICS, lambda _: time.sleep(0.02))
"""


@pytest.mark.faults
@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.long)])
def test_killed_at_random_moments_a_run_still_writes_each_match_once(
    sample_url: str, sample: Client, tmp_path: Path, kills: int
) -> None:
    path = tmp_path / "matches.jsonl"
    command = [sys.executable, "-c", SLOW_RUN, sample_url, str(path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    generator = np.random.default_rng(7)
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(generator.uniform(0.1, 1.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    rows, expected = read_rows(path), [match.to_dict() for match in sample.mine(TOPICS)]
    assert len(expected) > 20
    # where a block begins changes the last digit of a product
    assert [row.pop("cosine") for row in rows] == pytest.approx(
        [row.pop("cosine") for row in expected], abs=1e-6
    )
    assert [row.pop("probability") for row in rows] == pytest.approx(
        [row.pop("probability") for row in expected], abs=1e-5
    )
    assert rows == expected


# Tables


def test_matches_are_a_table_for_data_frames(tmp_path: Path) -> None:
    matches = Matches.collect(match for block in BLOCKS for match in block.matches)
    path = tmp_path / "matches.jsonl"
    path.write_bytes(to_jsonl(matches.matches))
    assert Matches.load(path) == matches
    assert len(matches) == 18
    rows = matches.to_arrow().to_pylist()
    expected = [match.to_dict() for match in matches]
    for name in NESTED:
        assert [json.loads(row.pop(name)) for row in rows] == [row.pop(name) for row in expected]
    assert rows == expected
    assert Matches(()).to_arrow().schema == matches.to_arrow().schema


def test_what_is_no_file_of_matches_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "matches.jsonl"
    with pytest.raises(UsageError, match=r"matches\.jsonl cannot be read"):
        Matches.load(path)
    path.write_bytes(to_jsonl(BLOCKS[0].matches) + b'{"topic": "refund"}\n')
    with pytest.raises(UsageError, match=r"matches.jsonl:4 is not a match: it needs topic, phrase"):
        Matches.load(path)


# The command


@pytest.fixture
def topics_file(tmp_path: Path) -> str:
    path = tmp_path / "topics.json"
    topics = [
        {"name": topic.name, "phrases": list(topic.phrases), "threshold": 0.005} for topic in TOPICS
    ]
    path.write_text(json.dumps(topics))
    return str(path)


def test_the_command_writes_what_the_client_yields(
    sample_url: str, sample: Client, topics_file: str
) -> None:
    expected = [json.loads(json.dumps(match.to_dict())) for match in sample.mine(TOPICS)]
    arguments = ("mine", "--topics", topics_file, "--url", sample_url)
    streamed = invoke_cli(*arguments)
    assert [json.loads(line) for line in streamed.stdout.splitlines()] == expected
    assert "88 documents" in streamed.stderr
    for name in ("jsonl", "csv", "parquet"):
        result = invoke_cli(*arguments, "--format", name, "--out", f"matches.{name}")
        assert result.status == 0
        counts = {
            topic.name: sum(match["topic"] == topic.name for match in expected) for topic in TOPICS
        }
        assert result.json["topics"] == counts
        assert result.json["matches"] == len(expected)
        rows = read_rows(Path(f"matches.{name}"))
        assert [row["text"] for row in rows] == [match["text"] for match in expected]
    assert invoke_cli(*arguments, "--format", "csv").stdout == Path("matches.csv").read_text()


def test_shards_of_the_command_share_the_matches(
    sample_url: str, sample: Client, topics_file: str
) -> None:
    rows = []
    for shard in ("0/2", "1/2"):
        result = invoke_cli("mine", "--topics", topics_file, "--url", sample_url, "--shard", shard)
        rows += result.stdout.splitlines()
    assert sorted(json.loads(row)["text"] for row in rows) == sorted(
        match.text for match in sample.mine(TOPICS)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "xml"], "format is 'xml': it must be jsonl, csv, parquet"),
        (["--format", "parquet"], "format is 'parquet', which needs a file: add --out FILE"),
        (["--index", "other"], "there is no index 'other'"),
        (["--shard", "2"], "shard '2' is not of the form I/N"),
        (["--out", "no/such/folder/matches.jsonl"], "matches cannot be written to"),
    ],
)
def test_a_wrong_command_is_one_line(
    sample_url: str, topics_file: str, options: list[str], message: str
) -> None:
    result = invoke_cli("mine", "--topics", topics_file, "--url", sample_url, *options)
    assert result.error.startswith(message)


def test_topics_are_checked_and_their_distances_shown(tmp_path: Path) -> None:
    path = tmp_path / "topics.yaml"
    path.write_text(
        "- {name: refund, phrases: [I want my money back, refund request], not: [refund policy]}\n"
        "- {name: money, phrases: [give me the money back]}\n"
    )
    shown = invoke_cli("topics", "check", str(path))
    assert "refund: 2 phrases  COLLIDES" in shown.stdout
    assert "refund request | give me the money back (money)" in shown.stdout
    refund, money = invoke_cli("topics", "check", str(path), "--json").json["topics"]
    assert refund["collides"] is True
    assert refund["nearest_other"]["cosine"] > refund["furthest"]["cosine"]
    assert refund["nearest_not"]["phrase"] == "refund request"
    assert (money["furthest"], money["nearest_not"]) == (None, None)
