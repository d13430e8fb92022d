"""Test setup, reindex and delete, and the options of query that only servers have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality import hard_sample
from hybrid_search.backends.server.transport.connection import Server
from tests.helpers import live_servers
from tests.helpers.cli import invoke_cli, run_cli
from tests.helpers.json_lines import write_rows
from tests.helpers.server_index import RawIndex

REFUND = {"id": "refund", "text": "I want a refund, and I want it today.", "sector": "shop"}
HOLD = {"id": "hold", "text": "I was on hold for an hour, and then for one more.", "sector": "bank"}


def query_ids(place: RawIndex, phrase: str) -> list[str]:
    return [hit["id"] for hit in place.call("query", phrase, "--json").json["hits"]]


@pytest.fixture(params=live_servers.URLS)
def server(request: pytest.FixtureRequest) -> Iterator[RawIndex]:
    """An index on a server, not made yet."""
    with live_servers.unique_index_name(request.param) as name:
        yield RawIndex(request.param, name)


@pytest.fixture(params=["embedded", *live_servers.SERVERS])
def anywhere(request: pytest.FixtureRequest) -> Iterator[RawIndex]:
    """An index that is not made yet, embedded or on a server."""
    if request.param == "embedded":
        yield RawIndex("embedded:here", "talks")
    else:
        with live_servers.unique_index_name(request.param) as name:
            yield RawIndex(request.param, name)


@pytest.fixture
def embedded() -> RawIndex:
    return RawIndex("embedded:here", "talks")


def write_documents(*documents: dict[str, Any]) -> str:
    return str(write_rows(Path("calls.jsonl"), documents))


def list_versions(place: RawIndex) -> list[str]:
    """Return the ends of all index names that begin with that of the test."""
    with live_servers.open_server(place.url) as server:
        rows = server.request("GET", "/_cat/indices", params={"format": "json", "h": "index"})
    return sorted(
        row["index"].removeprefix(place.index)
        for row in rows
        if row["index"].startswith(place.index)
    )


# setup


def test_setup_makes_an_empty_index_and_says_so(anywhere: RawIndex) -> None:
    result = anywhere.call("setup", "--policy", "4/1")
    assert result.status == 0
    assert re.fullmatch(
        rf"index '{anywhere.index}' is ready, with 0 documents, for .+\n", result.stdout
    )
    description = anywhere.call("setup", "--policy", "4/1", "--json").json
    assert (
        description["index"],
        description["documents"],
        description["passages"],
        description["policy"],
    ) == (anywhere.index, 0, 0, "4/1")


def test_ingest_follows_the_policy_of_the_index_unless_another_is_given(anywhere: RawIndex) -> None:
    anywhere.call("setup", "--policy", "4/2")
    result = anywhere.call("ingest", write_documents(REFUND))
    assert (result.status, result.json["documents"]) == (0, 1)
    assert anywhere.call("ingest", "calls.jsonl").json["skipped"] == 1
    error = anywhere.call("ingest", "--policy", "6/1", "calls.jsonl").error
    assert error.startswith(f"index '{anywhere.index}' was written with policy '4/2'")
    assert "but this is policy '6/1'" in error


@pytest.mark.usefixtures("_remembered_batches")
def test_the_sample_is_asked_for_by_name_or_by_nothing_but_not_beside_sources() -> None:
    assert invoke_cli("ingest", "--url", "http://127.0.0.1:9").error == (
        "no source given: name the files to ingest (- for standard input), "
        "or give --sample for the bundled calls"
    )
    assert (
        invoke_cli("ingest", "--url", "embedded:here", "--sample", write_documents(REFUND)).error
        == "both --sample and sources (calls.jsonl): give one of them"
    )
    result = invoke_cli("ingest", "--url", "embedded:here")
    assert (result.status, result.json["documents"]) == (0, 100)
    first, *_, last = result.stderr.splitlines()
    assert first == "no source given: ingesting the bundled sample of 100 calls"
    assert last.startswith("100 documents (")
    again = invoke_cli("ingest", "--url", "embedded:here", "--sample")
    assert again.json["skipped"] == 100
    assert "no source given" not in again.stderr


def test_setup_of_what_is_there_for_another_policy_is_an_error(anywhere: RawIndex) -> None:
    anywhere.call("setup")
    assert anywhere.call("setup", "--policy", "6/1").error.startswith(
        f"index '{anywhere.index}' was written with policy '5/1'"
    )
    assert anywhere.call("setup", "--policy", "often").error.startswith(
        "span policy 'often' is not of the form"
    )


def test_setup_takes_every_option_of_an_index(server: RawIndex) -> None:
    options = (
        "--quantization int8 --graph-dimension 6 --m 9 --ef-construction 77 --shards 2 "
        "--replicas 0 --analyzer simple --knn-engine lucene"
    )
    assert server.call("setup", *options.split()).status == 0
    with live_servers.open_server(server.url) as connection:
        ((_, definition),) = connection.request("GET", f"/{server.index}").items()
    assert definition["mappings"]["_meta"]["options"] == {
        "analyzer": "simple",
        "knn_engine": "lucene",
        "quantization": "int8",
        "graph_dimension": 6,
        "m": 9,
        "ef_construction": 77,
    }
    assert (
        definition["settings"]["index"]["number_of_shards"],
        definition["settings"]["index"]["number_of_replicas"],
    ) == ("2", "0")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            ("--quantization", "int2"),
            "quantization is 'int2': use byte, none, fp16, int8, int4 or binary",
        ),
        (("--shards", "0"), "shards is 0: use 1 to 1024"),
        (("--analyzer", "klingon"), "klingon"),
    ],
)
def test_setup_with_what_a_server_does_not_have_makes_nothing(
    server: RawIndex, option: tuple[str, str], message: str
) -> None:
    assert message in server.call("setup", *option).error
    assert list_versions(server) == []


@pytest.mark.parametrize(
    "option",
    [
        ("--analyzer", "simple"),
        ("--quantization", "int8"),
        ("--m", "9"),
        ("--ef-construction", "9"),
        ("--shards", "2"),
        ("--replicas", "0"),
    ],
)
def test_an_embedded_index_has_none_of_the_options_of_a_server(
    embedded: RawIndex, option: tuple[str, str]
) -> None:
    error = embedded.call("setup", *option).error
    assert error.startswith(
        f"an index on this machine has no {option[0][2:].replace('-', '_')}: "
        "that is for an index on a server"
    )
    assert not Path("here").exists()


# reindex


def test_reindex_puts_a_copy_with_another_policy_in_the_place_of_the_index(
    server: RawIndex,
) -> None:
    server.call("ingest", write_documents(REFUND, HOLD))
    before = server.call("query", "refund", "--json").json["hits"]
    result = server.call("reindex", "--policy", "3/1", "--quantization", "int8")
    assert result.status == 0
    assert f": a new version of index '{server.index}'" in result.stderr
    assert (result.json["documents"], result.json["passages"], result.json["failed"]) == (2, 2, 0)
    assert list_versions(server) == ["-000002"]
    assert server.call("query", "refund", "--json").json["hits"] == before
    assert server.call("ingest", "calls.jsonl").json["skipped"] == 2


def test_reindex_from_sources_has_what_is_in_them_by_the_policy_of_the_index(
    server: RawIndex,
) -> None:
    server.call("setup", "--policy", "4/1")
    server.call("ingest", write_documents(REFUND, HOLD))
    result = server.call("reindex", write_documents({**HOLD, "text": "On hold, again."}), "--keep")
    assert (result.status, result.json["read"], result.json["documents"]) == (0, 1, 1)
    assert list_versions(server) == ["-000001", "-000002"]
    assert query_ids(server, "refund on hold") == ["hold"]
    assert server.call("setup", "--policy", "4/1", "--json").json["policy"] == "4/1"


def test_reindex_from_a_table_takes_its_columns_by_name(server: RawIndex) -> None:
    server.call("ingest", write_documents(REFUND))
    Path("calls.csv").write_text("call,body\nhold,On hold again.\n")
    assert (
        "were refused (see no.jsonl)"
        in server.call("reindex", "calls.csv", "--rejects", "no.jsonl").error
    )
    assert (
        "no columns id and text are among the 2 of the table"
        in json.loads(Path("no.jsonl").read_text())["reason"]
    )
    assert server.call("reindex", "calls.csv", "--columns", "id=call,text=body").status == 0
    assert query_ids(server, "refund on hold") == ["hold"]


def test_reindex_of_sources_with_a_bad_document_changes_nothing(server: RawIndex) -> None:
    server.call("ingest", write_documents(REFUND))
    result = server.call("reindex", write_documents(HOLD, {"id": "bad"}), "--rejects", "no.jsonl")
    assert result.error.startswith("1 of 2 documents were refused (see no.jsonl), and index")
    assert json.loads(Path("no.jsonl").read_text())["line"] == 2
    assert query_ids(server, "refund on hold") == ["refund"]
    assert list_versions(server) == ["-000001", "-rejected"]


@pytest.mark.parametrize("arguments", [["calls.jsonl"], ["calls.jsonl", "--policy", "3/1"]])
def test_an_embedded_index_is_replaced_by_a_new_version(
    embedded: RawIndex, arguments: list[str]
) -> None:
    embedded.call("ingest", write_documents(REFUND))
    assert embedded.call("reindex", *arguments).json["documents"] == 1
    assert query_ids(embedded, "refund") == ["refund"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--quantization", "int8"], "an index on this machine has no quantization: that is"),
        (["--keep"], "an embedded index keeps no old version: copy its folder before, and run"),
    ],
)
def test_an_embedded_index_has_no_options_and_no_old_versions(
    embedded: RawIndex, arguments: list[str], message: str
) -> None:
    embedded.call("ingest", write_documents(REFUND))
    assert embedded.call("reindex", *arguments).error.startswith(message)
    assert query_ids(embedded, "refund") == ["refund"]


def test_reindex_of_what_is_not_there_is_an_error(anywhere: RawIndex) -> None:
    write_documents(REFUND)
    assert anywhere.call("reindex").error.startswith(f"there is no index '{anywhere.index}'")
    assert (
        anywhere.call("reindex", "nowhere.jsonl").error
        == "source nowhere.jsonl does not exist: check the name"
    )
    assert anywhere.call("reindex", "--rejects", "calls.jsonl", "calls.jsonl").error.startswith(
        "source calls.jsonl is the file that refused"
    )


def test_a_version_itself_is_not_reindexed(server: RawIndex) -> None:
    server.call("ingest", write_documents(REFUND))
    error = invoke_cli("reindex", "--index", f"{server.index}-000001", "--url", server.url).error
    assert error == f"'{server.index}-000001' is itself a version: give the alias that points to it"


# delete


def test_documents_are_deleted_by_their_ids_and_counted(anywhere: RawIndex) -> None:
    anywhere.call("ingest", write_documents(REFUND, HOLD, {"id": "-dashed", "text": "My refund."}))
    assert anywhere.call("delete", "refund", "nobody").stdout == "1 documents deleted\n"
    assert anywhere.call("delete", "--json", "--", "-dashed", "refund").json == {
        "index": anywhere.index,
        "deleted": 1,
    }
    assert query_ids(anywhere, "refund") == ["hold"]


def test_a_whole_index_is_deleted_with_yes_alone(anywhere: RawIndex) -> None:
    anywhere.call("ingest", write_documents(REFUND, HOLD, {"id": "bad"}))
    assert anywhere.call("delete").error == (
        f"give either the ids of documents, or --yes to delete the whole index '{anywhere.index}'"
    )
    assert anywhere.call("delete", "--yes", "refund").error.startswith(
        "give either the ids of documents, or --yes"
    )
    assert (
        anywhere.call("delete", "--yes").stdout
        == f"2 documents deleted, and index '{anywhere.index}' with them\n"
    )
    assert anywhere.call("query", "refund").error.startswith(
        f"there is no index '{anywhere.index}'"
    )
    if anywhere.url != "embedded:here":
        assert list_versions(anywhere) == []


def test_to_delete_from_what_is_not_there_is_an_error(anywhere: RawIndex) -> None:
    assert anywhere.call("delete", "refund").error.startswith(
        f"there is no index '{anywhere.index}'"
    )
    assert anywhere.call("delete", "--yes").error.startswith(
        f"there is no index '{anywhere.index}'"
    )


# query


def test_highlights_are_underlined_on_a_terminal(
    sample_place: RawIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    output = sample_place.call(
        "query", "router", "--alpha", "0", "--highlight", "--size", "1", "--spans", "0"
    ).stdout
    assert re.search(r"\x1b\[4m[Rr]outers?\x1b\[0m", output)


# query --dry-run


def parse_requests(output: str) -> list[tuple[str, Any]]:
    """Return path and body of each request that was printed for people."""
    matches = re.findall(r"^POST (\S+)\n(.*?\n)\n", output, flags=re.MULTILINE | re.DOTALL)
    return [(path, json.loads(body)) for path, body in matches]


@pytest.fixture
def live_server(sample_place: RawIndex) -> Iterator[Server]:
    with live_servers.open_server(sample_place.url) as server:
        yield server


on_servers = pytest.mark.parametrize(
    "sample_place", live_servers.URLS, indirect=True, scope="module"
)
"""For tests of requests, which an embedded index does not have."""


@on_servers
@pytest.mark.parametrize(
    ("options", "searches"),
    [
        ([], 2),  # what BM25 proposes for both legs, and the graph for the span leg
        (["--alpha", "0"], 1),
        (["--alpha", "1"], 2),
        (["--where", "sector=telecom", "--where", "language=en", "--where", "language=de"], 2),
        (["--size", "200", "--offset", "50"], 2),
        (["--context", "the router with the red light"], 2),
    ],
)
def test_the_requests_that_are_printed_are_taken_by_the_server_as_they_stand(
    sample_place: RawIndex, live_server: Server, options: list[str], searches: int
) -> None:
    result = sample_place.call("query", "router", "--dry-run", *options)
    as_json = sample_place.call("query", "router", "--dry-run", "--json", *options)
    requests = parse_requests(result.stdout)
    assert (result.status, result.stderr, len(requests)) == (0, "", searches)
    assert as_json.json == [{"path": path, "body": body} for path, body in requests]
    for path, body in requests:
        assert path == f"/{sample_place.index}/_search"
        assert live_server.request("POST", path, body=body)["hits"]["hits"]


@on_servers
def test_what_is_printed_is_what_is_sent(sample_place: RawIndex, live_server: Server) -> None:
    """At alpha 0 there is one request, whose scores are the BM25 scores of the hits."""
    ((path, body),) = parse_requests(
        sample_place.call("query", "router", "--alpha", "0", "--dry-run").stdout
    )
    server_hits = live_server.request("POST", path, body=body)["hits"]["hits"]
    server_scores = {
        f"{hit['fields']['document_id'][0]}#{hit['fields']['ordinal'][0]}": hit["_score"]
        for hit in server_hits
    }
    hits = sample_place.call(
        "query", "router", "--alpha", "0", "--group-by", "passage", "--size", "100", "--json"
    ).json["hits"]
    assert server_scores == {
        f"{hit['id']}#{hit['passage']}": pytest.approx(hit["bm25"])
        for hit in hits
        if hit["bm25_rank"]
    }


@on_servers
def test_quotes_and_letters_of_all_scripts_are_printed_as_they_can_be_sent(
    sample_place: RawIndex, live_server: Server
) -> None:
    phrase = 'wo ist "der Router" {größer}\n返金 \\ # * \u2028'
    requests = parse_requests(sample_place.call("query", phrase, "--dry-run").stdout)
    (must, *_) = requests[0][1]["query"]["bool"]["must"]
    assert [clause["multi_match"]["query"] for clause in must["bool"]["should"][1:]] == [phrase]
    for path, body in requests:
        live_server.request("POST", path, body=body)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_embedded_index_is_asked_without_requests(
    embedded: RawIndex, options: list[str]
) -> None:
    embedded.call("ingest", write_documents(REFUND))
    error = embedded.call("query", "refund", "--dry-run", *options).error
    assert (
        error
        == "there are no requests to print: only an index on a server is searched by requests. "
        "Use --url opensearch+https://..."
    )


# All of it, as processes


@pytest.mark.parametrize("url", live_servers.URLS)
def test_the_life_of_an_index_on_a_server_command_by_command(url: str) -> None:
    source = write_documents(
        *(
            json.loads(line)
            for line in hard_sample.CALLS.read_text(encoding="utf-8").splitlines()[:6]
        )
    )
    with live_servers.unique_index_name(url) as name:
        place = ["--index", name, "--url", url]
        assert run_cli("setup", *place, "--policy", "8/1").status == 0
        assert run_cli(*place, source, module="hybrid_search.ingest").json["documents"] == 6
        first = run_cli("query", "red light on the router", *place, "--json").json["hits"]
        assert run_cli("reindex", *place, "--policy", "6/1").json["documents"] == 6
        assert run_cli("query", "red light on the router", *place, "--json").json["hits"] == first
        assert (
            run_cli("delete", "--yes", *place).stdout
            == f"6 documents deleted, and index '{name}' with them\n"
        )


@pytest.mark.parametrize("command", [["ingest", "--sample"], ["setup"]])
def test_a_command_does_no_work_for_an_index_that_ends_with_it(command: list[str]) -> None:
    assert invoke_cli(*command, "--url", "memory:").error == (
        "an index in memory is gone when the command ends, so nothing was done: "
        "give a folder, as in --url embedded:FOLDER"
    )
