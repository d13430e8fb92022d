"""The index of a real server as the source: all its documents as of one point in time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.backends.server.transport.bulk import Action
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.errors import IndexMissingError, IndexStoreError, ServerError
from hybrid_search.ingest.sources.read_options import ReadOptions
from hybrid_search.ingest.sources.server_index import read_index
from tests.helpers import live_servers
from tests.helpers.cli import invoke_cli

MANY = 130
"""Number of documents: two pages of 50 and a part of a third."""

MAPPINGS = {
    "properties": {
        "body": {"type": "text"},
        "sector": {"type": "keyword"},
        "customer": {"properties": {"tier": {"type": "keyword"}}},
    }
}


@pytest.fixture(scope="module", params=live_servers.URLS)
def url(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(url: str) -> Iterator[Server]:
    with live_servers.open_server(url) as live_server:
        yield live_server


@contextmanager
def make_raw_index(
    server: Server, documents: Mapping[str, Mapping[str, Any]], shards: int = 3
) -> Iterator[str]:
    """Yield the name of a foreign index with `documents`, by their ids."""
    settings = {"number_of_shards": shards, "number_of_replicas": 0}
    with live_servers.scratch_index(server, {"settings": settings, "mappings": MAPPINGS}) as name:
        write_documents(server, name, documents)
        yield name


def write_documents(server: Server, name: str, documents: Mapping[str, Mapping[str, Any]]) -> None:
    actions = [Action(name, key, json.dumps(source).encode()) for key, source in documents.items()]
    assert all(outcome.is_accepted for outcome in server.bulk(actions))
    server.request("POST", f"/{name}/_refresh")


def call(number: int, **more: Any) -> dict[str, Any]:
    return {"body": f"I want a refund for order {number}.", **more}


def count_scrolls(server: Server) -> int:
    """Return how many scrolls are open."""
    nodes = server.request("GET", "/_nodes/stats/indices/search")["nodes"].values()
    return sum(int(node["indices"]["search"]["open_contexts"]) for node in nodes)


NO_BODY = "no key 'body' for the text: name one that is there, as in --columns id=call_id,text=body"
BODY = ReadOptions({"text": "body"})


def read(server: Server, index: str, options: ReadOptions = BODY) -> list[dict[str, Any]]:
    return [json.loads(line.data) for line in read_index(server, index, options)]


class RecordingServer(Server):
    """A server that records the searches sent to it."""

    def __init__(self, inner: Server, fail_after: int | None = None) -> None:
        self.__dict__.update(vars(inner))
        self.inner, self.fail_after = inner, fail_after
        self.searches: list[Any] = []

    def request(self, method: str, path: str, **options: Any) -> Any:
        if method == "POST" and path.endswith(("/_search", "/_search/scroll")):
            if len(self.searches) == self.fail_after:
                raise ServerError("no answer for a test", 400)
            self.searches.append(options["body"])
        return self.inner.request(method, path, **options)


@pytest.mark.server
@pytest.mark.parametrize("shards", [1, 3])
def test_every_document_is_read_once_from_all_shards_page_by_page(
    server: Server, shards: int
) -> None:
    recorder = RecordingServer(server)
    with make_raw_index(server, {str(n): call(n) for n in range(MANY)}, shards) as index:
        documents = read(recorder, index)
    assert sorted(int(document["id"]) for document in documents) == list(range(MANY))
    assert len(recorder.searches) >= 3
    assert count_scrolls(server) == 0


@pytest.mark.server
def test_what_is_written_meanwhile_is_not_seen(server: Server) -> None:
    with make_raw_index(server, {str(n): call(n) for n in range(MANY)}) as index:
        lines = read_index(server, index, BODY)
        next(lines)
        write_documents(
            server, index, {**{f"late{n}": call(n) for n in range(50)}, "7": call(7, sector="late")}
        )
        ids = [json.loads(line.data)["id"] for line in lines]
    assert len(ids) == MANY - 1
    assert not [document_id for document_id in ids if document_id.startswith("late")]


@pytest.mark.server
def test_several_indexes_are_read_as_one(server: Server) -> None:
    with (
        make_raw_index(server, {"a": call(1)}) as first_index,
        make_raw_index(server, {"b": call(2)}, 1) as second_index,
    ):
        assert sorted(
            document["id"] for document in read(server, f"{first_index},{second_index}")
        ) == ["a", "b"]


@pytest.mark.server
def test_fields_become_text_id_and_metadata(server: Server) -> None:
    turns = [{"speaker": "agent", "text": "Hello."}]
    documents: dict[str, dict[str, Any]] = {
        "a": {
            "body": "hello",
            "sector": "shop",
            "customer": {"tier": "gold", "ref": 7},
            "id": "a",
            "text": "summary",
            "source_text": "by hand",
        },
        "b": {"talk": {"turns": turns, "minutes": 3}, "number": 12},
    }
    with make_raw_index(server, documents) as index:
        extracted = [item for item in read(server, index) if item.get("id") == "a"]
        metadata = {
            "sector": "shop",
            "customer": {"tier": "gold", "ref": 7},
            "source_text": "by hand",
            "source_source_text": "summary",
        }
        assert extracted == [{"id": "a", "text": "hello", **metadata}]
        options = ReadOptions({"id": "number", "turns": "talk.turns"})
        lines_by_source = {line.source: line for line in read_index(server, index, options)}
        assert json.loads(lines_by_source[f"{index}/b"].data) == {
            "id": 12,
            "turns": turns,
            "talk": {"minutes": 3},
        }


@pytest.mark.server
def test_own_keys_below_turns_and_rows_of_turns_are_read_from_an_index(server: Server) -> None:
    said = [{"who": {"role": "agent"}, "words": "Hello.", "from_ms": 5}]
    options = ReadOptions(
        {"turns": "said", "text": "words", "speaker": "who.role", "start": "from_ms"}
    )
    turns = [{"speaker": "agent", "text": "Hello.", "start_ms": 5}]
    with make_raw_index(server, {"a": {"said": said, "queue": "q"}}) as index:
        assert read(server, index, options) == [{"id": "a", "turns": turns, "queue": "q"}]
    rows = {
        str(number): {"call": number % 2, "body": f"turn {number}", "at": number, "queue": "q"}
        for number in range(6)
    }
    columns = {"id": "call", "text": "body", "start": "at"}
    with make_raw_index(server, rows) as index:
        calls = read(server, index, ReadOptions(columns, "turn"))
    assert sorted((call["id"], [turn["text"] for turn in call["turns"]]) for call in calls) == [
        ("0", ["turn 0", "turn 2", "turn 4"]),
        ("1", ["turn 1", "turn 3", "turn 5"]),
    ]


@pytest.mark.server
def test_a_document_without_the_text_is_refused_with_its_id_as_the_place(server: Server) -> None:
    with make_raw_index(server, {"a": {"sector": "shop", "body": None}}) as index:
        (line,) = read_index(server, index, BODY)
    assert (line.source, line.fault) == (f"{index}/a", NO_BODY)
    assert json.loads(line.data) == {"_id": "a", "sector": "shop", "body": None}


@pytest.mark.server
def test_the_scroll_is_closed_where_reading_fails_or_is_given_up(server: Server) -> None:
    with make_raw_index(server, {str(n): call(n) for n in range(MANY)}) as index:
        with pytest.raises(ServerError, match="no answer for a test"):
            read(RecordingServer(server, fail_after=1), index)
        assert count_scrolls(server) == 0
        lines = read_index(server, index, BODY)
        next(lines)
        assert count_scrolls(server) > 0
        lines.close()
        assert count_scrolls(server) == 0


@pytest.mark.server
def test_a_scroll_that_is_gone_says_what_to_do(server: Server) -> None:
    with make_raw_index(server, {str(n): call(n) for n in range(MANY)}) as index:
        lines = read_index(ScrollClosingServer(server), index, BODY)
        message = r"no longer has the moment of the index that was read.*run the same command again"
        with pytest.raises(IndexStoreError, match=message):
            list(lines)


class ScrollClosingServer(RecordingServer):
    """A server that loses the scroll after the first page."""

    def request(self, method: str, path: str, **options: Any) -> Any:
        if (method, path) == ("POST", "/_search/scroll"):
            body = {"scroll_id": options["body"]["scroll_id"]}
            self.inner.request("DELETE", "/_search/scroll", body=body)
        return super().request(method, path, **options)


@pytest.mark.server
def test_an_answer_that_was_lost_is_an_error_at_the_end(server: Server) -> None:
    with make_raw_index(server, {str(n): call(n) for n in range(MANY)}) as index:
        lines = read_index(LosingServer(server), index, BODY)
        with pytest.raises(IndexStoreError, match=r"left out 50 documents .*run the same command"):
            list(lines)


class LosingServer(RecordingServer):
    """A server whose second page gets lost, so that the request is sent again."""

    def request(self, method: str, path: str, **options: Any) -> Any:
        if (method, path, len(self.searches)) == ("POST", "/_search/scroll", 1):
            super().request(method, path, **options)
        return super().request(method, path, **options)


@pytest.mark.server
def test_an_index_that_is_not_there_is_an_error(server: Server) -> None:
    with pytest.raises(IndexMissingError, match=r"there is no index 'nowhere' on .* to read from"):
        read(server, "nowhere")


@pytest.mark.server
def test_the_command_adds_an_index_of_ours_beside_the_other_and_again_skips_what_is_unchanged(
    server: Server, url: str, tmp_path: Path
) -> None:
    documents = {str(n): call(n, sector=("shop", "bank")[n % 2], n=n) for n in range(20)} | {
        "bad": {"sector": "shop"}
    }
    with make_raw_index(server, documents) as index, live_servers.unique_index_name(url) as own:
        command = (
            f"ingest --from-index {index} --columns text=body --where sector=shop "
            f"--where sector=mail --index {own} --url {url}"
        ).split()
        ran = invoke_cli(*command)
        counts = [ran.json[name] for name in ("read", "documents", "excluded", "failed")]
        assert (ran.status, counts) == (1, [21, 10, 10, 1])
        entry = json.loads(Path(f"{own}.rejected.jsonl").read_text())
        assert (entry["source"], entry["reason"]) == (f"{index}/bad", NO_BODY)
        write_documents(server, index, {"4": call(400, sector="shop", n=4)})
        again = invoke_cli(*command).json
        assert (again["documents"], again["skipped"]) == (1, 9)
        with connect(url) as client:
            assert {
                hit.metadata["sector"] for hit in client.query("refund", index=own, size=50)
            } == {"shop"}
        local = invoke_cli(
            *command[:-2], "--url", f"embedded:{tmp_path / 'store'}", "--from-url", url
        )
        assert local.json["documents"] == 10


def test_a_place_that_is_no_server_is_an_error() -> None:
    message = (
        "embedded: is not the URL of a server: use one, as in --from-url opensearch+https://HOST"
    )
    assert invoke_cli("ingest", "--from-index", "raw", "--url", "embedded:store").error == message
