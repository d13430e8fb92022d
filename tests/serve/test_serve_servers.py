"""The service over OpenSearch and Elasticsearch: the same answers as in Python, and no address."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest

from hybrid_search import connect
from tests.helpers import live_servers
from tests.helpers.service import run_service

PHRASE = "I want my money back"


@pytest.mark.parametrize("server", live_servers.SERVERS)
def test_a_server_is_asked_as_python_asks_it(server: str, calls: list[dict[str, Any]]) -> None:
    with live_servers.unique_index_name(server) as index, connect(server) as client:
        client.ingest(calls[:16], index=index)
        with run_service(server) as service:
            answer = service.post("/v1/query", {"phrase": PHRASE, "index": index, "size": 5}).json
            hits = client.query(PHRASE, index=index, size=5).hits
            assert [hit["id"] for hit in answer["hits"]] == [hit.id for hit in hits]
            path = f"/v1/documents/{hits[0].id}?index={index}&phrase=money"
            view = client.open_document(hits[0].id, "money", index=index)
            assert service.get(path).json["text"] == view.text
            names = [item["name"] for item in service.get("/v1/indexes").json["indexes"]]
            assert index in names
            missing = service.post("/v1/query", {"phrase": PHRASE, "index": f"{index}-not"})
            assert missing.status == 404
            assert str(urlsplit(server).port) not in missing.body.decode()


def test_a_store_that_is_away_is_a_problem_that_passes() -> None:
    with run_service("opensearch+http://127.0.0.1:9") as service:
        answer = service.post("/v1/query", {"phrase": PHRASE})
        assert answer.status == 503
        assert answer.headers["retry-after"] == "1"
        assert "127.0.0.1" not in answer.body.decode()
        assert service.get("/healthz").status == 200
