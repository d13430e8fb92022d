"""The fields of a passage that dashboards filter by: who speaks, and the day of the call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.turn_layout import read_speakers
from hybrid_search.client import Client
from tests.helpers import live_servers

CALLS: list[dict[str, Any]] = [
    {
        "id": "dated",
        "date": "2026-03-01T09:30:00Z",
        "turns": [
            {"speaker": "agent", "text": "Hello."},
            {"speaker": "customer", "text": "My parcel is late."},
            {"speaker": "agent", "text": "I am sorry."},
        ],
    },
    {"id": "plain", "text": "No speaker and no date.", "order": "2026-13-01"},
]
Fields = dict[str, tuple[list[str] | None, str | None]]


@pytest.fixture(autouse=True)
def _quick(tiny_encoder: None) -> None:
    pass


@pytest.mark.parametrize(
    "layout", ["", "no JSON", "3", "[1]", '{"speaker": "a"}', '[{"speaker": 3}]']
)
def test_a_damaged_layout_has_no_speakers(layout: str) -> None:
    assert read_speakers(layout) == []


@pytest.fixture(params=live_servers.URLS)
def server(request: pytest.FixtureRequest) -> Iterator[tuple[Client, Server, str]]:
    url = request.param
    with (
        live_servers.unique_index_name(url) as name,
        live_servers.open_server(url) as server,
        connect(url) as client,
    ):
        yield client, server, name


def read_call_fields(server: Server, index: str) -> Fields:
    """Return speakers and day of the first passage of each document."""
    server.request("POST", f"/{index}/_refresh")
    body = {
        "size": 50,
        "query": {"term": {"ordinal": 0}},
        "_source": ["document_id", "speakers"],
        "docvalue_fields": [{"field": "call_date", "format": "yyyy-MM-dd"}],
    }
    response = server.request("POST", f"/{index}/_search", body=body)
    fields: Fields = {}
    for hit in response["hits"]["hits"]:
        source, columns = hit["_source"], hit.get("fields", {})
        (day,) = columns.get("call_date", [None])
        fields[source["document_id"]] = (source.get("speakers"), day)
    return fields


def read_span_texts(server: Server, index: str) -> list[str]:
    """Return the words of the covering windows of the call without turns."""
    body = {"query": {"term": {"document_id": "plain"}}, "_source": ["spans.text"]}
    response = server.request("POST", f"/{index}/_search", body=body)
    (hit,) = response["hits"]["hits"]
    return [span["text"] for span in hit["_source"]["spans"]]


@pytest.mark.server
def test_calls_can_be_filtered_by_speaker_and_day(server: tuple[Client, Server, str]) -> None:
    client, transport, index = server
    client.ingest(CALLS, index=index)
    assert read_call_fields(transport, index) == {
        "dated": (["agent", "customer"], "2026-03-01"),
        "plain": ([], None),
    }
    assert read_span_texts(transport, index) == ["No speaker and no date"]
    query = {"bool": {"filter": [{"term": {"speakers": "customer"}}]}}
    response = transport.request("POST", f"/{index}/_count", body={"query": query})
    assert response["count"] == 1
