"""Indexes that an earlier version wrote are read by this one, with the same answers.

``data/old_indexes`` was made by commit 2ad2701 with the tiny encoder: twelve short calls of ours in
an embedded store, and what that version sent to OpenSearch 3.5.0 and Elasticsearch 9.5.3, with its
answers to five queries on each. Its maps of scores stand here: those of the model that ships are
fitted again now and then, and the answers must not change with them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import Hit, connect
from hybrid_search.client import Client
from hybrid_search.search import calibration
from hybrid_search.search.calibration import Calibration
from tests.helpers import live_servers

FIXTURES = Path(__file__).parent / "data" / "old_indexes"
INDEX = "calls"
CALIBRATION = Calibration(midpoint=0.55, slope=4.0, saturation=10.0)


@pytest.fixture(autouse=True)
def _quick(tiny_encoder: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "load", lambda *_: CALIBRATION)


def read_fixture(name: str) -> dict[str, Any]:
    fixture: dict[str, Any] = json.loads((FIXTURES / name).read_text(encoding="utf-8"))
    return fixture


def describe_hit(hit: Hit | dict[str, Any]) -> dict[str, Any]:
    """A hit as JSON with its numbers as the tests compare them.

    The answers were recorded before spans had a prior.
    """
    values = hit.to_dict() if isinstance(hit, Hit) else hit
    spans = [
        {"prior": 0.0, **span, "cosine": pytest.approx(span["cosine"], abs=1e-5)}
        for span in values["spans"]
    ]
    scores = {name: pytest.approx(values[name], abs=1e-5) for name in ("score", "bm25", "cosine")}
    return {"prior": 0.0, **values, **scores, "spans": spans}


def assert_same_answers(client: Client, fixture: dict[str, Any], index: str) -> None:
    for query, expected_hits in zip(fixture["queries"], fixture["hits"], strict=True):
        result = client.query(**{**query, "index": index, "size": 5})
        hits = [json.loads(json.dumps(hit.to_dict())) for hit in result.hits]
        assert hits == [describe_hit(hit) for hit in expected_hits], query


@pytest.fixture
def old_store(tmp_path: Path) -> str:
    """The URL of a copy of the embedded store."""
    shutil.copytree(FIXTURES / "embedded", tmp_path / "store")
    return f"embedded:{tmp_path / 'store'}"


def test_an_embedded_index_of_an_earlier_version_gives_the_same_answers(old_store: str) -> None:
    with connect(old_store) as client:
        assert_same_answers(client, read_fixture("embedded.json"), INDEX)


def test_an_embedded_index_of_an_earlier_version_takes_more_and_skips_what_it_has(
    old_store: str,
) -> None:
    """A source hash that came out differently would have every document encoded again."""
    fixture = read_fixture("embedded.json")
    with connect(old_store) as client:
        summary = client.ingest([*fixture["calls"], {"id": "new", "text": "one more"}], index=INDEX)
        assert (summary.documents, summary.skipped) == (1, len(fixture["calls"]))
        assert client.verify(index=INDEX).is_sound


@pytest.mark.parametrize("url", live_servers.URLS)
def test_an_index_on_a_server_of_an_earlier_version_gives_the_same_answers(url: str) -> None:
    engine = url.partition("+")[0]
    fixture = read_fixture(f"{engine}.json")
    with live_servers.unique_index_name(url) as name, live_servers.open_server(url) as server:
        physical_name = f"{name}-000001"
        body = {**fixture["index"], "aliases": {name: {}}}
        server.request("PUT", f"/{physical_name}", body=body)
        for id_, source in fixture["documents"].items():
            path = f"/{physical_name}/_doc/{id_.replace('#', '%23')}"
            server.request("PUT", path, body=source)
        server.request("POST", f"/{physical_name}/_refresh")
        with connect(url) as client:
            assert_same_answers(client, fixture, name)
