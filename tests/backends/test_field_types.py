"""A document whose metadata has another type than the server's index is refused by example."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid_search.client import Client
from hybrid_search.config import Settings
from hybrid_search.credentials import Access
from tests.helpers.fake_cluster import FakeCluster
from tests.helpers.fake_server import ScriptedServer
from tests.helpers.source_lines import make_lines

pytestmark = pytest.mark.usefixtures("tiny_encoder")


def ingest(server: ScriptedServer, rejects: Path, *metadata: dict[str, object]) -> list[str]:
    """Ingest a document for each of `metadata`, and return the reasons of the refused ones."""
    client = Client(Settings(f"opensearch+{server.url}", None, "cpu", Access(patience=0)))
    documents = [
        {"id": f"new-{number}", "text": "a", **values} for number, values in enumerate(metadata)
    ]
    client.ingest_lines(make_lines(documents), rejects=rejects)
    client.close()
    lines = rejects.read_text().splitlines() if rejects.exists() else []
    return [json.loads(line)["reason"] for line in lines]


def count_questions(server: ScriptedServer) -> int:
    return sum(b'"exists"' in request.body for request in server.requests)


def test_a_document_of_the_index_is_named_and_asked_for_once(tmp_path: Path) -> None:
    with ScriptedServer(FakeCluster("opensearch")) as server:
        reasons = ingest(server, tmp_path / "r.jsonl", {"sector": 7}, {"sector": 8})
        assert (
            reasons
            == [
                "metadata field 'sector' is a number here and a string in the index, "
                "as in document 'kettle': give it one type, or another name"
            ]
            * 2
        )
        assert count_questions(server) == 1


def test_a_document_of_the_same_run_is_named_without_a_question(tmp_path: Path) -> None:
    with ScriptedServer(FakeCluster("opensearch")) as server:
        reasons = ingest(server, tmp_path / "r.jsonl", {"minutes": 7}, {"minutes": "eight"})
        assert reasons == [
            "metadata field 'minutes' is a string here and a number in the index, "
            "as in document 'new-0': give it one type, or another name"
        ]
        assert count_questions(server) == 0


def test_where_no_document_has_the_field_any_more_the_reason_says_what_frees_it(
    tmp_path: Path,
) -> None:
    cluster = FakeCluster("opensearch")
    cluster.hits.clear()
    with ScriptedServer(cluster) as server:
        reasons = ingest(server, tmp_path / "r.jsonl", {"sector": 7})
    assert reasons == [
        "metadata field 'sector' is a number here and a string in the index: give it one type, "
        "or another name. If no document of the index has it so any more, reindex frees it"
    ]


def test_documents_that_fit_ask_nothing(tmp_path: Path) -> None:
    with ScriptedServer(FakeCluster("opensearch")) as server:
        assert ingest(server, tmp_path / "r.jsonl", {"sector": "x"}, {"minutes": 7}) == []
        assert count_questions(server) == 0
