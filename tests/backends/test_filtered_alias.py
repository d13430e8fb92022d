"""An alias with a filter shows a part of an index, and nothing goes beyond that part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid_search import connect
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.ingest.sources.server_index import read_index
from tests.helpers.cli import invoke_cli
from tests.helpers.live_servers import URLS, remove_new_indexes

pytestmark = pytest.mark.usefixtures("tiny_encoder")

SHOPS = 20
CALLS = [
    {"id": "bank-1", "text": "a loan of money\n" * 300, "sector": "bank", "at": "2026-03-01"},
    {"id": "bank-2", "text": "the branch is closed", "sector": "bank", "at": "2026-03-02"},
    *(
        {"id": f"shop-{number}", "text": f"my refund {number}", "sector": "shop"}
        for number in range(SHOPS)
    ),
]
BANKS = {"bank-1", "bank-2"}


@pytest.fixture(params=URLS)
def url(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    """The index calls, and banks, an alias of it that shows one sector."""
    with remove_new_indexes(url), connect(url) as filled_client:
        filled_client.ingest(CALLS)
        add_alias(filled_client, "banks", {"term": {"metadata.sector": "bank"}})
        yield filled_client


def add_alias(client: Client, alias: str, alias_filter: dict[str, object]) -> None:
    assert isinstance(client.backend, ServerBackend)
    action = {"add": {"index": "calls-000001", "alias": alias, "filter": alias_filter}}
    client.backend.server.request("POST", "/_aliases", body={"actions": [action]})


def count_documents(client: Client, index: str) -> int:
    return client.describe(index).documents


def test_counts_queries_and_facets_are_of_what_the_alias_shows(client: Client) -> None:
    assert count_documents(client, "banks") == 2
    for alpha in (0.5, 1):
        result = client.query("my refund", index="banks", alpha=alpha, facets=["sector"])
        assert {hit.id for hit in result} <= BANKS
        assert not result.facets or set(result.facets["sector"]) <= {"bank"}
    assert client.query("my refund", index="banks", alpha=1).total == 2
    over_matches = client.query(
        "branch refund", index="banks", facets=["sector"], facets_over="matches"
    )
    assert over_matches.facets == {"sector": {"bank": 1}}
    assert client.query("my refund", index="banks", where={"sector": "shop"}).total == 0
    assert client.query("branch", index="banks", where={"at": {"gt": "2026-03-01"}}).total == 1


def test_a_scan_and_a_listing_end_at_the_filter(client: Client) -> None:
    backend = client.backend
    assert {passage.document_id for passage in backend.scan_codes("banks")} == BANKS
    assert {passage.document_id for passage in backend.iterate_passages("banks")} == BANKS
    assert len(backend.list_passages("banks", "bank-1")) > 1
    assert backend.list_passages("banks", "shop-1") == []
    assert isinstance(backend, ServerBackend)
    assert set(backend.read_documents("banks", ["bank-1", "shop-1"])) == {"bank-1"}
    similar = client.similar("refund", index="banks", min_cosine=-1)
    assert {phrase.example.id for phrase in similar} <= BANKS
    blocks = list(client.mine_blocks([{"name": "refund", "phrases": ["refund"]}], index="banks"))
    assert blocks[-1].documents == 2


def test_the_part_is_sound_also_when_all_is_read(client: Client) -> None:
    report = client.verify("banks", full=True)
    assert report.is_sound
    assert report.documents == 2


def test_a_reader_of_the_alias_gets_its_documents(client: Client) -> None:
    assert isinstance(client.backend, ServerBackend)
    lines = read_index(client.backend.server, "banks")
    assert {json.loads(line.data)["document_id"] for line in lines} == BANKS


def test_only_documents_that_the_alias_shows_are_deleted(client: Client) -> None:
    assert client.delete(["bank-1", "shop-1", "nobody"], index="banks") == 1
    assert count_documents(client, "calls") == SHOPS + 1
    assert client.verify("calls").is_sound


def test_what_is_for_a_whole_index_is_refused(client: Client) -> None:
    message = "'banks': this alias has a filter and shows a part of calls-000001"
    with pytest.raises(UsageError, match=f"cannot write to {message}"):
        client.ingest([{"id": "new", "text": "a new call", "sector": "bank"}], index="banks")
    with pytest.raises(UsageError, match=f"cannot reindex {message}"):
        client.reindex("banks")
    with pytest.raises(UsageError, match=f"cannot delete {message}"):
        client.drop("banks")
    assert count_documents(client, "calls") == len(CALLS)
    assert client.indexes() == ["banks", "calls"]


@pytest.mark.long
def test_the_nearest_passages_of_the_part_are_found_among_many_nearer_ones(client: Client) -> None:
    client.ingest([{"id": f"more-{number}", "text": "my refund"} for number in range(3000)])
    result = client.query("my refund", index="banks", alpha=1)
    assert {hit.id for hit in result} == BANKS


def test_the_share_of_mine_and_the_bars_of_its_report_are_of_what_the_alias_shows(
    client: Client, url: str, tmp_path: Path
) -> None:
    assert count_documents(client, "banks") == 2
    topics, page = tmp_path / "topics.yaml", tmp_path / "report.html"
    topics.write_text("- {name: closed, phrases: [the branch is closed]}\n")
    mined = invoke_cli(
        *("mine", "--topics", str(topics), "--index", "banks", "--url", url),
        *("--out", str(tmp_path / "matches.jsonl"), "--report", str(page), "--by", "sector"),
    )
    assert (mined.status, mined.json["documents"]) == (0, 2)
    text = page.read_text()
    assert "bank" in text
    assert "shop" not in text
