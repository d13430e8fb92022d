"""Saved objects for an index of matches: their shape, their fields and their figures."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import vl_convert

from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import mappings
from hybrid_search.backends.server.transport.connection import Server
from tests.backends.test_dashboards import (
    FILES,
    SavedObject,
    buckets,
    index_documents,
    metric_value,
    metrics,
    named_fields,
    read_objects,
    request_of,
    visualization_state,
)
from tests.backends.test_mappings import properties
from tests.helpers import live_servers
from tests.helpers.tiny_encoder import make_spec

TITLE = "calls-matches"
SVG_TEXT = re.compile("<text[^>]*>([^<]*)</text>")
EVERY_ENGINE = pytest.mark.parametrize("engine", FILES)


def find_object(engine: str, name: str) -> SavedObject:
    (saved,) = [
        saved
        for saved in read_objects(engine, "matches")
        if saved["id"].endswith(f"matches-{name}")
    ]
    return saved


def visualization_type(saved: SavedObject) -> str | None:
    if saved["type"] != "visualization":
        return None
    return str(visualization_state(saved)["type"])


def vega_spec(saved: SavedObject) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(visualization_state(saved)["params"]["spec"])
    return spec


def check_vega_fields(engine: str, saved: SavedObject) -> None:
    """Check that a picture by Vega asks only for fields of the indexes that it names."""
    own_fields = {"calls-matches": index_fields(engine), "calls": set(properties(engine))}
    for data in vega_spec(saved)["data"]:
        url = data["url"]
        asked = {url["%timefield%"], *list_fields(url["body"])}
        assert asked <= own_fields[url["index"]], saved["id"]


def list_fields(node: Any) -> Iterator[str]:
    """Yield the fields that aggregations and filters name."""
    if isinstance(node, dict):
        yield from (value for name, value in node.items() if name == "field")
        yield from node.get("term", {})
        for value in node.values():
            yield from list_fields(value)


def index_fields(engine: str) -> set[str]:
    properties = mappings.notes_body("matches", engine)["mappings"]["properties"]
    return {*properties, "text.keyword"}


@EVERY_ENGINE
def test_every_object_names_fields_of_the_index(engine: str) -> None:
    """What holds for every dashboard is tested in test_dashboards."""
    for saved in read_objects(engine, "matches"):
        assert f"hybrid-search-{TITLE}" in saved["id"]
        if saved["type"] in ("search", "visualization"):
            assert named_fields(saved) <= index_fields(engine), saved["id"]
        if visualization_type(saved) == "vega":
            check_vega_fields(engine, saved)
        if saved["type"] == "index-pattern":
            assert saved["attributes"]["title"] == TITLE
            assert saved["attributes"]["timeFieldName"] in index_fields(engine)


# Numbers, asked of real servers

MENTIONS = (
    ("refund", "a", "customer", 0.9, "2026-01-01", "give it back"),
    ("refund", "a", "agent", 0.5, "2026-01-01", "refund you"),
    ("refund", "b", "customer", 0.4, "2026-01-02", "give it back"),
    ("hold", "b", "agent", 0.8, "2026-01-02", "hold the line"),
)
RISING_MENTIONS = (
    *MENTIONS,
    ("refund", "c", "customer", 0.9, "2026-01-13", "give it back"),
    ("hold", "c", "agent", 0.9, "2026-01-13", "hold the line"),
    ("hold", "d", "agent", 0.9, "2026-01-14", "hold the line"),
    ("hold", "e", "agent", 0.9, "2026-01-14", "hold the line"),
)
"""Refunds in two calls of the week of 29 December and one of that of 12 January, holds in one and
three.
"""
CALL_DAYS = {
    "a": "2026-01-01",
    "b": "2026-01-02",
    "silent": "2026-01-02",
    "c": "2026-01-13",
    "d": "2026-01-14",
    "e": "2026-01-14",
    "mute": "2026-01-15",
}
"""The day of each call, of those without a mention as well."""


def make_documents(mentions: Sequence[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    for number, (topic, call, speaker, probability, day, phrase) in enumerate(mentions):
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
            "labels": ["sector: shop" if call == "a" else "sector: bank"],
            "model": "mini",
            "run": "1",
            "mined_at": "2026-01-03",
        }


@pytest.fixture(scope="module", params=live_servers.URLS)
def filled_index(request: pytest.FixtureRequest) -> Iterator[tuple[Server, str]]:
    options = IndexOptions(replicas=0)
    with live_servers.open_server(request.param) as server:
        body = mappings.notes_body("matches", server.engine, options)
        with live_servers.scratch_index(server, body) as index:
            index_documents(server, index, make_documents(MENTIONS))
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
    assert set(read_chart(filled_index, "by-label")) == {
        ("sector: shop", "refund", 2, 1),
        ("sector: bank", "refund", 1, 1),
        ("sector: bank", "hold", 1, 1),
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


# Pictures by Vega, drawn of what a server answers


@pytest.fixture(scope="module", params=live_servers.URLS)
def risen_indexes(request: pytest.FixtureRequest) -> Iterator[tuple[Server, dict[str, str]]]:
    """An index of matches, and one of the calls that they are in."""
    options = IndexOptions(replicas=0, analyzer="standard")
    with live_servers.open_server(request.param) as server:
        matches_body = mappings.notes_body("matches", server.engine, options)
        calls_body = mappings.index_body(server.engine, make_spec(), options, server.version)
        with (
            live_servers.scratch_index(server, matches_body) as matches,
            live_servers.scratch_index(server, calls_body) as calls,
        ):
            index_documents(server, matches, make_documents(RISING_MENTIONS))
            index_documents(server, calls, make_passages())
            yield server, {"calls-matches": matches, "calls": calls}


def make_passages() -> Iterator[dict[str, Any]]:
    """Return two passages of each call: a call must be counted once."""
    for call, day in CALL_DAYS.items():
        for ordinal in range(2):
            yield {"document_id": call, "ordinal": ordinal, "call_date": day}


def draw(risen_indexes: tuple[Server, dict[str, str]], name: str) -> list[str]:
    """Return the texts of a picture, drawn as the products draw it, without a filter or a time."""
    server, indexes = risen_indexes
    spec = vega_spec(find_object(server.engine, name))
    for data in spec["data"]:
        url = data.pop("url")
        response = server.request("POST", f"/{indexes[url['index']]}/_search", body=url["body"])
        for step in data.pop("format")["property"].split("."):
            response = response[step]
        data["values"] = response
    drawing = vl_convert.vega_to_svg({**spec, "width": 600, "height": 300}, allowed_base_urls=[])
    return [html.unescape(text) for text in SVG_TEXT.findall(drawing)]


@pytest.mark.server
def test_a_topic_rises_if_its_latest_week_has_more_calls_than_a_mean_one_before(
    risen_indexes: tuple[Server, dict[str, str]],
) -> None:
    """Holds: three calls, and one in the two weeks before. Refunds fall from one a week to one."""
    heading, *rows = draw(risen_indexes, "rising")
    assert heading == "Calls in the week of 2026-01-12, and in a mean week before"
    assert rows == ["hold: 3 calls, 0.5 before"]


@pytest.mark.server
def test_topics_in_the_same_calls_are_counted_by_calls(
    risen_indexes: tuple[Server, dict[str, str]],
) -> None:
    """Calls b and c have mentions of both topics."""
    assert draw(risen_indexes, "together") == [
        "Calls with a mention of both topics",
        "hold and refund: 2 calls",
    ]


@pytest.mark.server
def test_the_share_of_calls_is_drawn_by_week_and_topic(
    risen_indexes: tuple[Server, dict[str, str]],
) -> None:
    """Refunds are in 2 of 3 calls of the first week. Holds are in 3 of 4 of the last."""
    texts = draw(risen_indexes, "share")
    assert {"Week of the call", "Share of calls", "Topic", "hold", "refund"} <= set(texts)
    assert "80%" in texts
    assert "90%" not in texts


@EVERY_ENGINE
def test_without_matches_a_picture_says_so(engine: str) -> None:
    for name, heading in (
        ("rising", "No topic has more calls in its latest week than before"),
        ("together", "No call has mentions of two topics"),
    ):
        spec = vega_spec(find_object(engine, name))
        spec["data"] = [{"name": data["name"], "values": []} for data in spec["data"]]
        drawing = vl_convert.vega_to_svg({**spec, "width": 600, "height": 300})
        assert heading in drawing


def test_both_products_draw_the_same() -> None:
    first, second = (
        {
            saved["id"]: vega_spec(saved)
            for saved in read_objects(engine, "matches")
            if visualization_type(saved) == "vega"
        }
        for engine in FILES
    )
    assert first == second
    assert len(first) == 3
