"""Saved objects for an index of matches: their shape, their fields and their figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import mappings
from hybrid_search.backends.server.transport.base import Server
from tests.backends.test_dashboards import (
    FILES,
    VERSIONS,
    SavedObject,
    buckets,
    comparable_content,
    grid_cells,
    index_documents,
    metric_value,
    metrics,
    named_fields,
    request_of,
    visualization_state,
)
from tests.helpers import live_servers

TITLE = "calls-matches"
EVERY_ENGINE = pytest.mark.parametrize("engine", FILES)


@cache
def read_objects(engine: str) -> tuple[SavedObject, ...]:
    path = mappings.FOLDER / FILES[engine] / "matches.ndjson"
    return tuple(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def find_object(engine: str, name: str) -> SavedObject:
    (saved,) = [saved for saved in read_objects(engine) if saved["id"].endswith(f"matches-{name}")]
    return saved


def index_fields(engine: str) -> set[str]:
    properties = mappings.matches_body(engine)["mappings"]["properties"]
    return {*properties, "text.keyword"}


@EVERY_ENGINE
def test_every_object_names_fields_of_the_index_and_objects_that_stand_before_it(
    engine: str,
) -> None:
    keys: set[tuple[str, str]] = set()
    for saved in read_objects(engine):
        references = {(item["type"], item["id"]) for item in saved["references"]}
        assert references <= keys, saved["id"]
        keys.add((saved["type"], saved["id"]))
        version = saved.get("migrationVersion", {}).get(saved["type"])
        assert (version or saved["typeMigrationVersion"]) == VERSIONS[engine][saved["type"]]
        if saved["type"] in ("search", "visualization"):
            assert named_fields(saved) <= index_fields(engine), saved["id"]
        if saved["type"] == "index-pattern":
            assert saved["attributes"]["title"] == TITLE
            assert saved["attributes"]["timeFieldName"] in index_fields(engine)
    assert len(keys) == len(read_objects(engine))
    assert all(f"hybrid-search-{TITLE}" in id_ for _, id_ in keys)


@EVERY_ENGINE
def test_the_dashboard_shows_every_chart_and_the_mentions_and_no_two_panels_overlap(
    engine: str,
) -> None:
    (board,) = [saved for saved in read_objects(engine) if saved["type"] == "dashboard"]
    shown = {item["id"] for item in board["references"]}
    kinds = ("visualization", "search")
    assert shown == {saved["id"] for saved in read_objects(engine) if saved["type"] in kinds}
    panels = json.loads(board["attributes"]["panelsJSON"])
    cells = [cell for panel in panels for cell in grid_cells(panel["gridData"])]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 48
    names = {item["name"] for item in board["references"]}
    prefix = {"opensearch": "", "elasticsearch": "{}:"}[engine]
    assert names == {prefix.format(p["panelIndex"]) + p["panelRefName"] for p in panels}


def test_both_products_are_asked_the_same() -> None:
    first, second = (
        {
            saved["id"]: comparable_content(saved)
            for saved in read_objects(engine)
            if saved["type"] in ("search", "visualization")
        }
        for engine in FILES
    )
    assert first == second


# Numbers, asked of real servers

MENTIONS = (
    ("refund", "a", "customer", 0.9, "2026-01-01", "give it back"),
    ("refund", "a", "agent", 0.5, "2026-01-01", "refund you"),
    ("refund", "b", "customer", 0.4, "2026-01-02", "give it back"),
    ("hold", "b", "agent", 0.8, "2026-01-02", "hold the line"),
)


def make_documents() -> Iterator[dict[str, Any]]:
    for number, (topic, call, speaker, probability, day, phrase) in enumerate(MENTIONS):
        yield {
            "topic": topic,
            "phrase": phrase,
            "index": "calls",
            "document_id": call,
            "turn": number,
            "speaker": speaker,
            "start": number,
            "end": number + 5,
            "text": "hello",
            "sentence": "hello you",
            "marked": "«hello» you",
            "cosine": 0.7,
            "probability": probability,
            "time": day,
            "metadata": {},
            "model": "mini",
            "run": "1",
            "mined_at": "2026-01-03",
        }


@pytest.fixture(scope="module", params=live_servers.URLS)
def filled_index(request: pytest.FixtureRequest) -> Iterator[tuple[Server, str]]:
    options = IndexOptions(replicas=0)
    with live_servers.open_server(request.param) as server:
        body = mappings.matches_body(server.engine, options)
        with live_servers.scratch_index(server, body) as index:
            index_documents(server, index, make_documents())
            yield server, index


def read_chart(filled_index: tuple[Server, str], name: str) -> list[tuple[Any, ...]]:
    """Return the rows of a chart: the keys of its buckets, and then its metrics."""
    server, index = filled_index
    saved = find_object(server.engine, name)
    response = server.request("POST", f"/{index}/_search", body=request_of(saved))
    total = response["hits"]["total"]["value"]
    aggs = visualization_state(saved)["aggs"]
    # the last bucket of an object is the outermost of the request that the tests make of it
    bucket_ids = [agg["id"] for agg in reversed(buckets(aggs))]
    top = {**response.get("aggregations", {}), "doc_count": total}
    return list(_read_rows(top, bucket_ids, metrics(aggs)))


def _read_rows(
    row: dict[str, Any], bucket_ids: list[str], shown: list[dict[str, Any]]
) -> Iterator[tuple[Any, ...]]:
    if not bucket_ids:
        yield tuple(metric_value(row, agg) for agg in shown)
        return
    for inner in row[bucket_ids[0]]["buckets"]:
        for values in _read_rows(inner, bucket_ids[1:], shown):
            yield (inner.get("key_as_string", inner["key"]), *values)


@pytest.mark.server
def test_the_charts_count_mentions_and_calls(filled_index: tuple[Server, str]) -> None:
    """The mean of .9, .5, .4 and .8 is .65; that of the three refunds .6."""
    assert read_chart(filled_index, "amounts") == [(4, 2, pytest.approx(0.65))]
    assert read_chart(filled_index, "by-topic") == [
        ("refund", 3, 2, pytest.approx(0.6)),
        ("hold", 1, 1, pytest.approx(0.8)),
    ]
    assert set(read_chart(filled_index, "by-speaker")) == {
        ("customer", "refund", 2, 2),
        ("agent", "refund", 1, 1),
        ("agent", "hold", 1, 1),
    }
    assert set(read_chart(filled_index, "by-phrase")) == {
        ("give it back", "refund", 2),
        ("refund you", "refund", 1),
        ("hold the line", "hold", 1),
    }
    assert set(read_chart(filled_index, "by-call")) == {("a", 2, 1), ("b", 2, 2)}
    assert set(read_chart(filled_index, "over-time")) == {
        ("refund", "2026-01-01", 2),
        ("refund", "2026-01-02", 1),
        ("hold", "2026-01-02", 1),
    }


@pytest.mark.server
def test_the_mentions_stand_with_the_likeliest_first(filled_index: tuple[Server, str]) -> None:
    server, index = filled_index
    saved = find_object(server.engine, "mentions")
    body = {
        "sort": [{name: order} for name, order in saved["attributes"]["sort"]],
        "fields": saved["attributes"]["columns"],
    }
    hits = server.request("POST", f"/{index}/_search", body=body)["hits"]["hits"]
    assert [hit["_source"]["probability"] for hit in hits] == [0.9, 0.8, 0.5, 0.4]
    assert set(hits[0]["fields"]) == set(saved["attributes"]["columns"])
