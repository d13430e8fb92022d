"""`mine --since`: what was written since an earlier run, once, and nothing else."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.backends.server import passage_codec
from hybrid_search.topics.since import parse_time
from tests.helpers.cli import CommandResult, invoke_cli
from tests.helpers.live_servers import URLS, open_server, remove_new_indexes

TOPIC = '[{"name": "refund", "phrases": ["I want my money back"], "threshold": 0.3}]'


def call(name: str) -> dict[str, Any]:
    return {"id": name, "text": f"Good morning. I want my money back, please, said {name}."}


@pytest.fixture
def url(tmp_path: Path) -> str:
    (tmp_path / "topics.json").write_text(TOPIC)
    return f"embedded:{tmp_path / 'store'}"


def ingest(url: str, *names: str) -> None:
    with connect(url) as client:
        client.ingest([call(name) for name in names])


def mine(url: str, out: str, since: str | None = None, *more: str) -> CommandResult:
    options = ["--since", since] if since else []
    return invoke_cli(
        "mine", "--topics", "topics.json", "--url", url, "--out", out, *options, *more
    )


def mined_ids(path: str) -> list[str]:
    return [json.loads(line)["id"] for line in Path(path).read_text().splitlines()]


def test_each_run_has_what_was_written_since_the_one_before(url: str) -> None:
    ingest(url, "a", "b")
    assert mine(url, "1.jsonl").status == 0
    assert mined_ids("1.jsonl") == ["a", "b"]
    ingest(url, "c", "d")
    assert mine(url, "2.jsonl", "1.jsonl").json["documents"] == 2
    assert mined_ids("2.jsonl") == ["c", "d"]
    assert mine(url, "3.jsonl", "2.jsonl").json["matches"] == 0
    with connect(url) as client:
        client.ingest([{"id": "a", "text": "At last: I want my money back."}])
        client.ingest([call("e")])
    mine(url, "4.jsonl", "3.jsonl")
    assert mined_ids("4.jsonl") == ["a", "e"]
    mine(url, "5.jsonl", "1.jsonl")
    assert mined_ids("5.jsonl") == ["c", "d", "a", "e"]
    streamed = invoke_cli(
        "mine", "--topics", "topics.json", "--url", url, "--since", "2.jsonl", "--format", "csv"
    )
    assert len(streamed.stdout.splitlines()) == 3


def test_an_index_without_documents_can_be_gone_on_with(url: str) -> None:
    with connect(url) as client:
        client.setup()
    assert mine(url, "1.jsonl").status == 0
    ingest(url, "a")
    assert mine(url, "2.jsonl", "1.jsonl").status == 0
    assert mined_ids("2.jsonl") == ["a"]


def test_another_index_of_the_name_is_refused(url: str) -> None:
    ingest(url, "a")
    mine(url, "1.jsonl")
    with connect(url) as client:
        client.drop("calls")
    ingest(url, "a", "b", "c")
    message = "index 'calls' is another index than the one that 1.jsonl was mined from"
    assert message in mine(url, "2.jsonl", "1.jsonl").error


def test_an_older_copy_of_the_index_is_refused(url: str, tmp_path: Path) -> None:
    ingest(url, "a")
    index = tmp_path / "store" / "calls.index"
    shutil.copytree(index, tmp_path / "copy")
    ingest(url, "b")
    mine(url, "1.jsonl")
    shutil.rmtree(index)
    shutil.copytree(tmp_path / "copy", index)
    message = "is an older copy of the index than the one that 1.jsonl was mined from"
    assert message in mine(url, "2.jsonl", "1.jsonl").error


def test_other_topics_are_refused(url: str) -> None:
    ingest(url, "a")
    mine(url, "1.jsonl")
    Path("topics.json").write_text(TOPIC.replace("0.3", "0.2"))
    assert "the topics, their tuning" in mine(url, "2.jsonl", "1.jsonl").error
    Path("topics.json").write_text(TOPIC)
    assert "the model or the shard" in mine(url, "2.jsonl", "1.jsonl", "--shard", "0/2").error
    assert mine(url, "2.jsonl", "1.jsonl").status == 0


def test_what_is_no_earlier_run_is_refused(url: str) -> None:
    ingest(url, "a")
    assert "there is no 1.jsonl.position" in mine(url, "2.jsonl", "1.jsonl").error
    mine(url, "1.jsonl")
    assert "whose matches would be lost" in mine(url, "1.jsonl", "1.jsonl").error
    assert mined_ids("1.jsonl") == ["a"]
    Path("1.jsonl.position").write_text("[1]")
    assert "does not tell of which run it is" in mine(url, "2.jsonl", "1.jsonl").error


def test_only_a_store_that_knows_the_order_of_writing_can_tell(client: Any, empty_url: str) -> None:
    from hybrid_search.topics.since import begin_mark

    client.ingest([call("a")])
    mark = begin_mark(client.backend, "calls", "topics")
    assert (mark is not None) == empty_url.startswith("embedded:")


def test_an_embedded_index_has_no_times(url: str) -> None:
    ingest(url, "a")
    message = "is a time, and only a server knows when documents were written: give the --out"
    assert message in mine(url, "2.jsonl", "2026-01-31").error
    assert "there is no yesterday.position" in mine(url, "2.jsonl", "yesterday").error


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T09:30", datetime(2026, 1, 31, 9, 30, tzinfo=UTC)),
        ("2026-01-31T09:30:00Z", datetime(2026, 1, 31, 9, 30, tzinfo=UTC)),
        ("2026-01-31T09:30+02:00", datetime(2026, 1, 31, 7, 30, tzinfo=UTC)),
        ("yesterday", None),
        ("matches.jsonl", None),
        ("2026-13-01", None),
    ],
)
def test_a_time_is_in_utc_if_it_has_no_offset(text: str, expected: datetime | None) -> None:
    assert parse_time(text) == expected


@pytest.fixture(params=URLS)
def server_url(request: pytest.FixtureRequest) -> Iterator[str]:
    Path("topics.json").write_text(TOPIC)
    with remove_new_indexes(request.param):
        yield request.param


def test_a_server_tells_by_a_time_what_was_written_since(server_url: str) -> None:
    ingest(server_url, "a", "b")
    time.sleep(1.1)  # times are stored in seconds
    began = datetime.now(UTC).isoformat(timespec="seconds")
    with connect(server_url) as client:
        long_call = {"id": "c", "text": " ".join(call("c")["text"] for _ in range(40))}
        client.ingest([{"id": "a", "text": "At last: I want my money back."}, long_call])
        ingested = client.describe("calls").documents
    assert ingested == 3
    # what stands around the sentences of the long call blurs some of them
    Path("topics.json").write_text(TOPIC.replace("0.3", "0.02"))
    result = mine(server_url, "new.jsonl", began)
    assert result.json["documents"] == 2
    assert set(mined_ids("new.jsonl")) == {"a", "c"}
    assert mined_ids("new.jsonl").count("c") == 40
    assert mine(server_url, "none.jsonl", "2999-01-01").json["documents"] == 0
    assert mine(server_url, "all.jsonl", "2000-01-01").json["documents"] == 3
    message = "--since all.jsonl is not a time in ISO 8601, by which a server finds which"
    assert message in mine(server_url, "2.jsonl", "all.jsonl").error


def test_all_passages_of_a_document_have_one_time(
    server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = passage_codec.build_source

    def build_slowly(*arguments: Any, **options: Any) -> dict[str, Any]:
        time.sleep(0.4)
        return build(*arguments, **options)

    monkeypatch.setattr(passage_codec, "build_source", build_slowly)
    with connect(server_url) as client:
        client.ingest([{"id": "a", "text": " ".join(call("a")["text"] for _ in range(60))}])
        passages = client.describe("calls").passages
    with open_server(server_url) as server:
        answer = server.request("POST", "/calls/_search", body={"size": 100})
    times = [hit["_source"]["indexed_at"] for hit in answer["hits"]["hits"]]
    assert len(times) == passages >= 4  # 0.4 s each: more than a second in all
    assert len(set(times)) == 1
