"""`mine --to-index`: the matches of each topic as a set on a server, whatever was killed before."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from hybrid_search import connect
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import scan
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.match_index import MatchIndex
from hybrid_search.cli.mining_outputs import build_reader
from hybrid_search.topics.match import read_matches
from hybrid_search.topics.match_upload import upload_matches
from tests.helpers.cli import CommandResult, invoke_cli
from tests.helpers.live_servers import URLS, open_server, remove_new_indexes

REFUND = {"name": "refund", "phrases": ["I want my money back"], "threshold": 0.05}
HOLD = {"name": "hold", "phrases": ["waiting on hold"], "threshold": 0.05}
CALLS: list[dict[str, Any]] = [
    {
        "id": f"call-{number}",
        "turns": [
            {"speaker": "agent", "text": "Good morning. How can I help?", "start_ms": 0},
            {
                "speaker": "customer",
                "text": "It is broken. I want my money back, please. I was waiting on hold.",
                "start_ms": 4000 + number,
            },
        ],
        "date": f"2026-03-0{number + 1}",
        "product": {"name": "kettle", "price": 19.5},
        "is_member": number % 2 == 0,
    }
    for number in range(4)
]


@pytest.fixture(params=URLS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with remove_new_indexes(request.param):
        with connect(request.param) as client:
            client.ingest(CALLS)
        yield request.param


def mine(url: str, topics: list[dict[str, Any]], *options: str) -> CommandResult:
    Path("topics.json").write_text(json.dumps(topics))
    default = () if "--to-index" in options else ("--to-index", "calls-matches")
    return invoke_cli(
        *("mine", "--topics", "topics.json", "--url", url, "--out", "matches.jsonl"),
        *default,
        *options,
    )


def list_documents(url: str) -> dict[str, dict[str, Any]]:
    with open_server(url) as server:
        path = "/calls-matches/_search"
        answer = server.request("POST", path, body={"size": 1000, "query": {"match_all": {}}})
    return {hit["_id"]: hit["_source"] for hit in answer["hits"]["hits"]}


def test_each_match_is_a_document_with_its_sentence_and_its_time(url: str) -> None:
    assert mine(url, [REFUND, HOLD]).status == 0
    matches = list(read_matches(Path("matches.jsonl")))
    documents = list(list_documents(url).values())
    assert len(documents) == len(matches) >= 8
    for match in matches:
        (document,) = (
            row
            for row in documents
            if (row["topic"], row["document_id"], row["start"], row["end"])
            == (match.topic, match.id, match.start, match.end)
        )
        assert document["text"] == match.text
        assert document["probability"] == match.probability
        assert document["metadata"] == match.metadata
        assert document["time"] == match.metadata["date"]
        is_member = str(match.metadata["is_member"]).lower()
        assert document["labels"] == ["product.name: kettle", f"is_member: {is_member}"]
        assert document["marked"].replace("«", "").replace("»", "") == document["sentence"]
        assert f"«{match.text}»" in document["marked"]
        assert "broken" not in document["sentence"] or "broken" in match.text
        assert (document["index"], document["speaker"]) == ("calls", "customer")


def test_the_metadata_has_the_types_of_the_index_and_can_be_counted(url: str) -> None:
    mine(url, [REFUND])
    body = {
        "size": 0,
        "query": {"term": {"metadata.is_member": True}},
        "aggs": {
            "names": {"terms": {"field": "metadata.product.name"}},
            "price": {"max": {"field": "metadata.product.price"}},
            "days": {"date_histogram": {"field": "time", "calendar_interval": "week"}},
            "topics": {"terms": {"field": "topic"}},
        },
    }
    with open_server(url) as server:
        counts = server.request("POST", "/calls-matches/_search", body=body)["aggregations"]
    assert [bucket["key"] for bucket in counts["names"]["buckets"]] == ["kettle"]
    assert counts["price"]["value"] == 19.5
    assert [bucket["key"] for bucket in counts["topics"]["buckets"]] == ["refund"]
    assert len(counts["days"]["buckets"]) >= 1


def test_a_topic_is_replaced_as_a_set_and_the_others_stay(url: str) -> None:
    mine(url, [REFUND, HOLD])
    first = list_documents(url)
    mine(url, [REFUND, HOLD])
    assert list_documents(url).keys() == first.keys()
    result = mine(url, [{**REFUND, "threshold": 0.999999}])
    refunds = {id_ for id_, row in first.items() if row["topic"] == "refund"}
    assert list_documents(url).keys() == first.keys() - refunds
    assert f"0 matches written to calls-matches, {len(refunds)} of earlier runs removed" in (
        " ".join(result.stderr.split())
    )


def test_killed_and_run_again_the_set_is_the_same(url: str) -> None:
    mine(url, [REFUND, HOLD])
    expected = list_documents(url).keys()
    mine(url, [{**REFUND, "phrases": ["How can I help?"]}, HOLD])
    assert list_documents(url).keys() != expected
    mine(url, [REFUND, HOLD], "--to-index", "other-matches")  # only for its file

    class KilledError(Exception):
        """Stands for the end of a process."""

    class Dying:
        """Writes some matches, and is killed."""

        def write(self, run: str, matches: Iterator[dict[str, Any]]) -> int:
            index.write(run, islice(matches, 3))
            raise KilledError

        def remove_earlier(self, run: str, topics: Any) -> int:
            raise AssertionError(f"{run} {topics}")

    with connect(url) as client, open_server(url) as server:
        index = MatchIndex(server, "calls-matches", "calls", IndexOptions())
        assert isinstance(client.backend, ServerBackend)
        views_of = build_reader(client.backend, "calls")
        arguments = (Path("matches.jsonl"), ["refund", "hold"], views_of)
        with pytest.raises(KilledError):
            upload_matches(cast("MatchIndex", Dying()), *arguments)
        written, removed = upload_matches(index, *arguments)
    assert written == len(expected)
    assert removed > 0
    assert list_documents(url).keys() == expected


def test_many_calls_are_read_by_few_requests(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[int] = []
    read = scan.read_documents

    def count(server: Any, index: Any, ids: Sequence[str]) -> Any:
        requests.append(len(ids))
        return read(server, index, ids)

    monkeypatch.setattr(scan, "read_documents", count)
    monkeypatch.setattr(scan, "PAGE_CONTENTS", 3)
    mine(url, [REFUND, HOLD])
    assert requests == [len(CALLS)]
    assert all(row["marked"] != row["sentence"] for row in list_documents(url).values())
    assert {row["document_id"] for row in list_documents(url).values()} == {
        call["id"] for call in CALLS
    }


def test_of_a_call_that_was_deleted_the_words_are_the_sentence(url: str) -> None:
    mine(url, [REFUND])
    gone, *_ = {match.id for match in read_matches(Path("matches.jsonl"))}
    written: list[dict[str, Any]] = []

    class Sink:
        """Keeps what it gets."""

        def write(self, run: str, matches: Iterator[dict[str, Any]]) -> int:
            assert run
            written.extend(matches)
            return len(written)

        def remove_earlier(self, run: str, topics: Any) -> int:
            assert (run, topics) == (run, ["refund"])
            return 0

    with connect(url) as client:
        client.delete([gone])
        assert isinstance(client.backend, ServerBackend)
        read = build_reader(client.backend, "calls")
        sink = cast("MatchIndex", Sink())
        upload_matches(sink, Path("matches.jsonl"), ["refund"], read)
    for row in written:
        assert (row["sentence"] == row["text"]) == (row["document_id"] == gone)


@pytest.mark.long
def test_killed_at_ten_random_moments_the_command_still_leaves_each_match_once(url: str) -> None:
    mine(url, [REFUND, HOLD])
    expected = {id_: row["marked"] for id_, row in list_documents(url).items()}
    with open_server(url) as server:
        server.request("DELETE", "/calls-matches")
    command = [sys.executable, "-m", "hybrid_search", "mine", "--topics", "topics.json"]
    options = ["--url", url, "--out", "matches.jsonl", "--to-index", "calls-matches"]
    generator = np.random.default_rng(11)
    for _ in range(10):
        process = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)
        time.sleep(generator.uniform(0.5, 6.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
    assert {id_: row["marked"] for id_, row in list_documents(url).items()} == expected
    assert len({row["run"] for row in list_documents(url).values()}) == 1


def test_an_index_that_is_none_of_matches_is_refused(url: str) -> None:
    message = "index 'calls' is not an index of matches: choose another name for --to-index"
    assert mine(url, [REFUND], "--to-index", "calls").error == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "m.jsonl"], "--to-index writes to a server, and this index is not on a server"),
        ([], "--to-index is made from a file of matches: add --out FILE, in jsonl"),
        (["--out", "m.csv", "--format", "csv"], "--to-index is made from a file of matches"),
        (["--out", "m.jsonl", "--shard", "0/2"], "and --shard 0/2 has some of them"),
    ],
)
def test_a_wrong_command_is_one_line(sample_url: str, options: list[str], message: str) -> None:
    Path("topics.json").write_text(json.dumps([REFUND]))
    arguments = ("mine", "--topics", "topics.json", "--url", sample_url, "--to-index", "x-matches")
    assert message in invoke_cli(*arguments, *options).error
