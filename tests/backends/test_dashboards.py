"""Saved objects for OpenSearch Dashboards and Kibana: their shape, their fields and their figures.

They have the shape that the products export, and name nothing that our indexes lack. Neither
product runs here. Their shapes were read in their repositories and exports: for OpenSearch
Dashboards ``vb_saved_objects.ndjson`` and the migrations (7.9.3 is the newest shape of a dashboard,
in 3.x too), for Kibana ``managed_content.json`` and exports of 8.13.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import mappings
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.types import IndexSpec
from tests.helpers import live_servers

FILES = {"opensearch": "dashboards", "elasticsearch": "kibana"}
"""The folder with the objects for each engine's product."""

SavedObject = dict[str, Any]

VERSIONS = {
    "opensearch": {
        "index-pattern": "7.6.0",
        "search": "7.9.3",
        "visualization": "7.10.0",
        "dashboard": "7.9.3",
    },
    "elasticsearch": {
        "index-pattern": "8.0.0",
        "search": "8.0.0",
        "visualization": "8.5.0",
        "dashboard": "8.9.0",
    },
}
"""The version of each type's shape, as OpenSearch Dashboards 2.x and 3.x and Kibana 8.13 write it.
A later product migrates it at the import.
"""

IDS = {
    *("hybrid-search-calls", "hybrid-search-calls-rejected"),
    *("hybrid-search-calls-passages", "hybrid-search-calls-refusals"),
    *(
        "hybrid-search-calls-documents",
        "hybrid-search-calls-amounts",
        "hybrid-search-calls-over-time",
        "hybrid-search-calls-most-spans",
    ),
    *("hybrid-search-calls-refused-over-time", "hybrid-search-calls-refused-by-reason"),
    "hybrid-search-calls-incomplete",
}
"""Written out: an imported object replaces the one with its id, and a changed id would leave the
old one there.
"""


@cache
def read_objects(engine: str, file: str = "calls") -> tuple[SavedObject, ...]:
    text = (mappings.FOLDER / FILES[engine] / f"{file}.ndjson").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


def objects_of_types(engine: str, *types: str, file: str = "calls") -> list[SavedObject]:
    return [saved for saved in read_objects(engine, file) if saved["type"] in types]


EVERY_ENGINE = pytest.mark.parametrize("engine", FILES)
SAID = {
    "calls": "hybrid-search-calls-passages",
    "matches": "hybrid-search-calls-matches-mentions",
}
"""The saved search that a dashboard shows, by its file."""

EVERY_FILE = pytest.mark.parametrize("file", SAID)
EVERYWHERE = pytest.mark.parametrize(("engine", "file"), list(itertools.product(FILES, SAID)))
SEARCHES_AND_CHARTS = [
    (engine, saved["id"])
    for engine in FILES
    for saved in objects_of_types(engine, "search", "visualization")
    if saved["references"]  # a picture by Vega names its index in itself
]


def find_object(engine: str, id_: str, type_: str | None = None) -> SavedObject:
    matches = [saved for saved in read_objects(engine) if saved["id"] == id_]
    (match,) = [saved for saved in matches if type_ in (None, saved["type"])]
    return match


def search_source(saved: SavedObject) -> dict[str, Any]:
    """Return the search of an object: the query, and by reference the index."""
    search_source_json: dict[str, Any] = json.loads(
        saved["attributes"]["kibanaSavedObjectMeta"]["searchSourceJSON"]
    )
    return search_source_json


def visualization_state(saved: SavedObject) -> dict[str, Any]:
    vis_state: dict[str, Any] = json.loads(saved["attributes"]["visState"])
    return vis_state


def data_view_of(engine: str, saved: SavedObject) -> SavedObject:
    """Return the data view that a search or visualization refers to."""
    (reference,) = saved["references"]
    assert reference["name"] == search_source(saved)["indexRefName"]
    return find_object(engine, reference["id"], "index-pattern")


def index_fields(engine: str, index: str) -> set[str]:
    """Return every field of an index, sub-fields too, from its mapping."""
    spec = IndexSpec("mini", "0123abcd", 4, "int8", "turn", "6/1")
    body = {
        "calls": mappings.index_body(engine, spec, IndexOptions(), (9, 9, 9)),
        "calls-rejected": mappings.notes_body("rejected", engine),
    }[index]
    return set(_flatten_field_names(body["mappings"]["properties"], ""))


def _flatten_field_names(properties: dict[str, Any], prefix: str) -> Iterator[str]:
    for name, field_mapping in properties.items():
        yield f"{prefix}{name}"
        yield from _flatten_field_names(
            {**field_mapping.get("properties", {}), **field_mapping.get("fields", {})},
            f"{prefix}{name}.",
        )


def named_fields(saved: SavedObject) -> set[str]:
    """Return the fields that an object names."""
    if saved["type"] == "search":
        return {
            *saved["attributes"]["columns"],
            *(name for name, _ in saved["attributes"]["sort"]),
            *query_filter(saved),
        }
    parameters = [agg["params"] for agg in visualization_state(saved)["aggs"]]
    aggregated = {params["field"] for params in parameters if "field" in params}
    return aggregated | set(query_filter(saved))


def vega_data(engine: str) -> dict[str, Any]:
    """Return where the picture of incomplete calls has its data from, and what it does to them."""
    saved = find_object(engine, "hybrid-search-calls-incomplete")
    spec = json.loads(visualization_state(saved)["params"]["spec"])
    (data,) = spec["data"]
    return dict(data)


def query_filter(saved: SavedObject) -> dict[str, int]:
    """Return the query of an object: nothing, or a field and its number, as in ``ordinal: 0``."""
    query = search_source(saved)["query"]
    assert query["language"] == "kuery"
    name, _, value = query["query"].partition(": ")
    return {name: int(value)} if name else {}


# Shape


@EVERY_ENGINE
def test_the_objects_and_their_ids_are_these(engine: str) -> None:
    assert {saved["id"] for saved in read_objects(engine) if saved["type"] != "dashboard"} == IDS
    keys = [(saved["type"], saved["id"]) for saved in read_objects(engine)]
    assert len(keys) == len(set(keys)) == len(IDS) + 1
    assert [saved["id"] for saved in objects_of_types(engine, "dashboard")] == [
        "hybrid-search-calls"
    ]


@EVERYWHERE
def test_every_object_says_of_which_version_its_shape_is(engine: str, file: str) -> None:
    for saved in read_objects(engine, file):
        if engine == "opensearch":
            assert saved["migrationVersion"] == {saved["type"]: VERSIONS[engine][saved["type"]]}
        else:
            assert (saved["typeMigrationVersion"], saved["coreMigrationVersion"]) == (
                VERSIONS[engine][saved["type"]],
                "8.8.0",
            )


@EVERYWHERE
def test_an_object_has_the_keys_that_an_import_reads_and_none_that_only_one_installation_has(
    engine: str, file: str
) -> None:
    version = (
        {"migrationVersion"}
        if engine == "opensearch"
        else {"typeMigrationVersion", "coreMigrationVersion", "managed"}
    )
    assert all(
        set(saved) == {"type", "id", "attributes", "references"} | version
        for saved in read_objects(engine, file)
    )


@EVERYWHERE
def test_every_reference_leads_to_an_object_of_the_same_file_that_stands_before_it(
    engine: str, file: str
) -> None:
    seen_keys: set[tuple[str, str]] = set()
    for saved in read_objects(engine, file):
        assert {
            (reference["type"], reference["id"]) for reference in saved["references"]
        } <= seen_keys, saved["id"]
        seen_keys.add((saved["type"], saved["id"]))


@EVERYWHERE
def test_json_inside_json_is_json(engine: str, file: str) -> None:
    """Both products store parts of an object as text.

    If that cannot be read they show an error page.
    """
    texts = [
        (saved["id"], value)
        for saved in read_objects(engine, file)
        for name, value in saved["attributes"].items()
        if name.endswith(("JSON", "State", "fields", "Filters"))
    ]
    assert len(texts) > 2 * len(objects_of_types(engine, "visualization", file=file))
    assert all(isinstance(json.loads(value), dict | list) for _, value in texts)


@EVERYWHERE
def test_a_visualization_is_named_alike_in_its_list_and_in_itself(engine: str, file: str) -> None:
    assert all(
        visualization_state(saved)["title"] == saved["attributes"]["title"]
        for saved in objects_of_types(engine, "visualization", file=file)
    )


@EVERYWHERE
def test_the_series_of_a_chart_are_its_metrics(engine: str, file: str) -> None:
    for saved in objects_of_types(engine, "visualization", file=file):
        vis_state = visualization_state(saved)
        metric_ids = {agg["id"] for agg in vis_state["aggs"] if agg["schema"] == "metric"}
        assert {
            series["data"]["id"] for series in vis_state["params"].get("seriesParams", [])
        } <= metric_ids
        assert {
            agg["params"]["orderBy"] for agg in vis_state["aggs"] if agg["type"] == "terms"
        } <= metric_ids
        assert len({agg["id"] for agg in vis_state["aggs"]}) == len(vis_state["aggs"])


@EVERYWHERE
def test_the_dashboard_shows_every_chart_and_what_was_said_and_no_two_panels_overlap(
    engine: str, file: str
) -> None:
    (board,) = objects_of_types(engine, "dashboard", file=file)
    panels = json.loads(board["attributes"]["panelsJSON"])
    referenced_ids = {reference["id"] for reference in board["references"]}
    assert referenced_ids == {
        saved["id"] for saved in objects_of_types(engine, "visualization", file=file)
    } | {SAID[file]}
    cells = [(x, y) for panel in panels for x, y in grid_cells(panel["gridData"])]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 48  # the columns of both products' grids


def grid_cells(grid: dict[str, int]) -> Iterator[tuple[int, int]]:
    columns = range(grid["x"], grid["x"] + grid["w"])
    rows = range(grid["y"], grid["y"] + grid["h"])
    yield from itertools.product(columns, rows)


@EVERYWHERE
def test_a_panel_finds_what_it_shows_by_the_name_that_its_product_gives_references(
    engine: str, file: str
) -> None:
    """Kibana puts the panel's own index before the name; OpenSearch Dashboards numbers them."""
    (board,) = objects_of_types(engine, "dashboard", file=file)
    by_name = {reference["name"]: reference for reference in board["references"]}
    for panel in json.loads(board["attributes"]["panelsJSON"]):
        assert panel["gridData"]["i"] == panel["panelIndex"]
        name = (
            panel["panelRefName"]
            if engine == "opensearch"
            else f"{panel['panelIndex']}:{panel['panelRefName']}"
        )
        reference = by_name.pop(name)
        assert engine == "opensearch" or reference["type"] == panel["type"]
    assert not by_name


@EVERY_FILE
def test_both_products_are_asked_the_same(file: str) -> None:
    """The same ids, fields, queries and aggregations: only how a product writes them differs."""
    content_by_engine = {
        name: {
            saved["id"]: comparable_content(saved)
            for saved in objects_of_types(name, "search", "visualization", file=file)
        }
        for name in FILES
    }
    assert content_by_engine["opensearch"] == content_by_engine["elasticsearch"]


def comparable_content(saved: SavedObject) -> tuple[Any, ...]:
    if saved["type"] == "search":
        return (
            saved["attributes"]["title"],
            query_filter(saved),
            saved["attributes"]["columns"],
            saved["attributes"]["sort"],
        )
    product_specific = (
        "useNormalizedEsInterval",
        "useNormalizedOpenSearchInterval",
        "includeIsRegex",
        "excludeIsRegex",
    )
    aggs = [
        {
            **agg,
            "params": {
                name: value for name, value in agg["params"].items() if name not in product_specific
            },
        }
        for agg in visualization_state(saved)["aggs"]
    ]
    return (
        saved["attributes"]["title"],
        saved["attributes"]["description"],
        query_filter(saved),
        visualization_state(saved)["type"],
        aggs,
    )


# Fields


@EVERY_ENGINE
def test_data_views_are_the_alias_and_its_notes_and_their_times_are_dates(engine: str) -> None:
    for title, time in (("calls", "indexed_at"), ("calls-rejected", "at")):
        (data_view,) = [
            saved
            for saved in objects_of_types(engine, "index-pattern")
            if saved["attributes"]["title"] == title
        ]
        assert data_view["attributes"]["timeFieldName"] == time
        assert time in index_fields(engine, title)


@pytest.mark.parametrize(("engine", "id_"), SEARCHES_AND_CHARTS)
def test_every_field_that_an_object_names_is_one_of_its_index(engine: str, id_: str) -> None:
    saved = find_object(engine, id_)
    mapped_fields = index_fields(engine, data_view_of(engine, saved)["attributes"]["title"])
    assert named_fields(saved)
    assert not {
        name for name in named_fields(saved) - mapped_fields if not name.startswith("metadata.")
    }


@EVERY_ENGINE
def test_the_picture_of_incomplete_calls_asks_the_index_for_fields_that_it_has(engine: str) -> None:
    url = vega_data(engine)["url"]
    assert url["index"] == "calls"
    aggs = url["body"]["aggs"]["documents"]
    fields = {url["%timefield%"], aggs["terms"]["field"], aggs["aggs"]["expected"]["max"]["field"]}
    assert fields <= index_fields(engine, "calls")
    assert vega_data("opensearch") == vega_data("elasticsearch")


def saved_fields() -> list[dict[str, Any]]:
    """Return the fields of refusals that the file for OpenSearch Dashboards has."""
    pattern = find_object("opensearch", "hybrid-search-calls-rejected", "index-pattern")
    return list(json.loads(pattern["attributes"]["fields"]))


def test_the_fields_of_refusals_are_known_before_there_is_one() -> None:
    """Without them the panels of a fresh index are errors: "Could not locate ... (id: at)"."""
    names = {field["name"] for field in saved_fields() if not field["name"].startswith("_")}
    assert names == index_fields("opensearch", "calls-rejected")


def test_in_kibana_a_saved_search_opens_with_the_time_of_the_dashboard() -> None:
    (board,) = objects_of_types("elasticsearch", "dashboard")
    period = {"from": board["attributes"]["timeFrom"], "to": board["attributes"]["timeTo"]}
    for saved in objects_of_types("elasticsearch", "search"):
        assert saved["attributes"]["timeRestore"]
        assert saved["attributes"]["timeRange"] == period


@EVERY_ENGINE
def test_what_nobody_can_read_is_not_fetched_to_be_looked_at(engine: str) -> None:
    """The products fetch 500 passages for a page."""
    hidden = {
        source_filter["value"]
        for source_filter in json.loads(
            find_object(engine, "hybrid-search-calls", "index-pattern")["attributes"][
                "sourceFilters"
            ]
        )
    }
    fields = index_fields(engine, "calls")
    assert {"spans.vector", "tokens"} & fields <= hidden <= fields
    assert not hidden & {
        name
        for saved in objects_of_types(engine, "search", "visualization")
        for name in named_fields(saved)
    }


@EVERY_ENGINE
def test_every_name_of_the_index_can_be_replaced_at_once(engine: str) -> None:
    """For an index of another name: ``sed s/calls/tickets/g`` gives a file of new objects."""
    text = (
        (mappings.FOLDER / FILES[engine] / "calls.ndjson")
        .read_text(encoding="utf-8")
        .replace("calls", "tickets")
    )
    objects = [json.loads(line) for line in text.splitlines()]
    assert all(
        "tickets" in saved["id"] and "tickets" in saved["attributes"]["title"] for saved in objects
    )
    assert not {saved["id"] for saved in objects} & {saved["id"] for saved in read_objects(engine)}


# Numbers: what the objects ask, asked of real servers

SPANS = {"a": (4, 5, 6), "b": (2,), "c": (1, 2)}
"""Spans of each passage of three calls. The third call says it has three passages: one was lost."""
DAYS = {"a": "2026-01-01", "b": "2026-01-02", "c": "2026-01-02"}
EXPECTED_PASSAGES = {"a": 3, "b": 1, "c": 3}
LONG_REASON = "r" * 1025
REFUSALS = (
    ("2026-01-01", "no id"),
    ("2026-01-02", "empty text"),
    ("2026-01-02", "empty text"),
    ("2026-01-02", LONG_REASON),
)


@dataclass(frozen=True, slots=True)
class FilledServer:
    """A server with an index of passages and one of notes, each by the title of its data view."""

    server: Server
    indexes: dict[str, str]

    @property
    def engine(self) -> str:
        return self.server.engine

    def search(self, saved: SavedObject, body: dict[str, Any]) -> dict[str, Any]:
        index = self.indexes[data_view_of(self.engine, saved)["attributes"]["title"]]
        response: dict[str, Any] = self.server.request("POST", f"/{index}/_search", body=body)
        return response


def passages() -> Iterator[dict[str, Any]]:
    for id_, counts in SPANS.items():
        for ordinal, count in enumerate(counts):
            identity = {
                "document_id": id_,
                "ordinal": ordinal,
                "passages": EXPECTED_PASSAGES[id_],
                "source_hash": "0",
                "indexed_at": f"{DAYS[id_]}T10:00:00+00:00",
            }
            spans = [
                {"start": position, "end": position + 1, "vector": [1.0, 0.0, 0.0, 0.0]}
                for position in range(count)
            ]
            content = {
                "start": 0,
                "end": 5,
                "text": "hello",
                "metadata": {"sector": "bank"},
                "span_count": count,
                "layout": "[]",
            }
            yield {**identity, **content, "tokens": "AAECAw==", "spans": spans}


def refusals() -> Iterator[dict[str, Any]]:
    for line, (day, reason) in enumerate(REFUSALS, 1):
        yield {
            "index": "calls",
            "at": f"{day}T10:00:00+00:00",
            "source": "calls.jsonl",
            "line": line,
            "reason": reason,
        }


def index_documents(server: Server, index: str, documents: Iterator[dict[str, Any]]) -> None:
    action: dict[str, Any] = {"index": {}}
    lines = [line for document in documents for line in (action, document)]
    assert not server.request("POST", f"/{index}/_bulk", params={"refresh": True}, lines=lines)[
        "errors"
    ]


@pytest.fixture(scope="module", params=live_servers.URLS)
def filled_server(request: pytest.FixtureRequest) -> Iterator[FilledServer]:
    options = IndexOptions(analyzer="standard", replicas=0)
    spec = IndexSpec("mini", "0123abcd", 4, "int8", "turn", "6/1")
    with live_servers.open_server(request.param) as server:
        body = mappings.index_body(server.engine, spec, options, server.version)
        with (
            live_servers.scratch_index(server, body) as index,
            live_servers.scratch_index(
                server, mappings.notes_body("rejected", server.engine, options)
            ) as rejects_index,
        ):
            index_documents(server, index, passages())
            index_documents(server, rejects_index, refusals())
            yield FilledServer(server, {"calls": index, "calls-rejected": rejects_index})


def request_of(saved: SavedObject) -> dict[str, Any]:
    """Return the request that a product sends for a visualization.

    It has the metrics, inside the bucket if there is one. An automatic interval is a day here.
    """
    saved_aggs = visualization_state(saved)["aggs"]
    aggs = {
        agg["id"]: {agg["type"]: {"field": agg["params"]["field"]}}
        for agg in metrics(saved_aggs)
        if agg["type"] != "count"
    }
    for agg in buckets(saved_aggs):
        aggs = {
            agg["id"]: {
                agg["type"]: _terms_body(agg["params"], saved_aggs)
                if agg["type"] == "terms"
                else _date_histogram_body(agg["params"]),
                "aggs": aggs,
            }
        }
    query = {
        "bool": {
            "filter": [{"match": {name: value}} for name, value in query_filter(saved).items()]
        }
    }
    return {"size": 0, "track_total_hits": True, "query": query, "aggs": aggs}


def metrics(aggs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [agg for agg in aggs if agg["schema"] == "metric"]


def buckets(aggs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [agg for agg in aggs if agg["schema"] != "metric"]


def _terms_body(params: dict[str, Any], aggs: list[dict[str, Any]]) -> dict[str, Any]:
    (order_agg,) = [agg for agg in aggs if agg["id"] == params["orderBy"]]
    missing = {"missing": "__missing__"} if params["missingBucket"] else {}
    return {
        "field": params["field"],
        "size": params["size"],
        "order": {"_count" if order_agg["type"] == "count" else order_agg["id"]: params["order"]},
        **missing,
    }


def _date_histogram_body(params: dict[str, Any]) -> dict[str, Any]:
    assert params["interval"] == "auto"
    return {
        "field": params["field"],
        "fixed_interval": "1d",
        "format": "yyyy-MM-dd",
        "min_doc_count": params["min_doc_count"],
    }


def chart_rows(filled_server: FilledServer, id_: str) -> list[tuple[Any, ...]]:
    """Return what a visualization shows: the key of each bucket, if any, then the metrics."""
    saved = find_object(filled_server.engine, f"hybrid-search-calls-{id_}")
    response, aggs = (
        filled_server.search(saved, request_of(saved)),
        visualization_state(saved)["aggs"],
    )
    for bucket in buckets(aggs):
        rows = response["aggregations"][bucket["id"]]["buckets"]
        return [(row.get("key_as_string", row["key"]), *_row_values(row, aggs)) for row in rows]
    return [
        tuple(
            _row_values(
                {
                    **response.get("aggregations", {}),
                    "doc_count": response["hits"]["total"]["value"],
                },
                aggs,
            )
        )
    ]


def _row_values(row: dict[str, Any], aggs: list[dict[str, Any]]) -> list[Any]:
    return [metric_value(row, agg) for agg in metrics(aggs)]


def metric_value(row: dict[str, Any], agg: dict[str, Any]) -> Any:
    return row["doc_count"] if agg["type"] == "count" else row[agg["id"]]["value"]


@pytest.mark.server
def test_documents_are_counted_once_each(filled_server: FilledServer) -> None:
    assert chart_rows(filled_server, "documents") == [(len(SPANS),)]
    assert chart_rows(filled_server, "over-time") == [("2026-01-01", 1), ("2026-01-02", 2)]


@pytest.mark.server
def test_passages_and_spans_are_counted_and_spans_a_passage_is_their_mean(
    filled_server: FilledServer,
) -> None:
    """4 + 5 + 6 + 2 + 1 + 2 = 20 spans of 6 passages."""
    assert chart_rows(filled_server, "amounts") == [(6, 20, pytest.approx(20 / 6))]


@pytest.mark.server
def test_spans_a_document_stand_beside_the_passages_that_it_has_and_should_have(
    filled_server: FilledServer,
) -> None:
    assert chart_rows(filled_server, "most-spans") == [
        ("a", 15, 3, 3),
        ("c", 3, 2, 3),
        ("b", 2, 1, 1),
    ]


@pytest.mark.server
def test_the_call_that_lost_a_passage_is_the_one_that_is_not_wholly_indexed(
    filled_server: FilledServer,
) -> None:
    data = vega_data(filled_server.engine)
    index = filled_server.indexes["calls"]
    response = filled_server.server.request("POST", f"/{index}/_search", body=data["url"]["body"])
    for step in data["format"]["property"].split("."):
        response = response[step]
    condition = data["transform"][0]["expr"]
    assert condition == "datum.doc_count < datum.expected.value"
    rows = [row for row in response if row["doc_count"] < row["expected"]["value"]]
    assert [(row["key"], row["doc_count"], row["expected"]["value"]) for row in rows] == [
        ("c", 2, 3)
    ]


@pytest.mark.server
def test_the_fields_of_refusals_are_those_of_a_server(filled_server: FilledServer) -> None:
    index = filled_server.indexes["calls-rejected"]
    response = filled_server.server.request("GET", f"/{index}/_field_caps", params={"fields": "*"})
    for field in saved_fields():
        if not field["name"].startswith("_"):
            ((kind, capabilities),) = response["fields"][field["name"]].items()
            assert [kind] == field["esTypes"]
            assert capabilities["searchable"] is field["searchable"]
            assert capabilities["aggregatable"] is field["aggregatable"]


@pytest.mark.server
def test_the_passages_of_a_call_stand_in_their_order(filled_server: FilledServer) -> None:
    saved = find_object(filled_server.engine, "hybrid-search-calls-passages")
    body = {"sort": [{name: order} for name, order in saved["attributes"]["sort"]]}
    hits = filled_server.search(saved, body)["hits"]["hits"]
    places = [(hit["_source"]["document_id"], hit["_source"]["ordinal"]) for hit in hits]
    assert places == [("b", 0), ("c", 0), ("c", 1), ("a", 0), ("a", 1), ("a", 2)]


@pytest.mark.server
def test_refusals_are_counted_by_day_and_by_reason_also_those_too_long_for_a_keyword(
    filled_server: FilledServer,
) -> None:
    assert chart_rows(filled_server, "refused-over-time") == [("2026-01-01", 1), ("2026-01-02", 3)]
    rows = chart_rows(filled_server, "refused-by-reason")
    assert rows[0] == ("empty text", 2)
    assert set(rows[1:]) == {("no id", 1), ("__missing__", 1)}


@pytest.mark.server
def test_a_saved_search_gives_its_columns_and_none_of_what_its_data_view_hides(
    filled_server: FilledServer,
) -> None:
    """OpenSearch Dashboards reads the source, Kibana asks for fields."""
    for saved in objects_of_types(filled_server.engine, "search"):
        data_view, attributes = (
            data_view_of(filled_server.engine, saved)["attributes"],
            saved["attributes"],
        )
        hidden = [
            source_filter["value"] for source_filter in json.loads(data_view["sourceFilters"])
        ]
        body = {
            "sort": [{name: order} for name, order in attributes["sort"]],
            "_source": {"excludes": hidden},
            "fields": attributes["columns"],
        }
        hits = filled_server.search(saved, body)["hits"]["hits"]
        optional = (
            {"document_id"} if data_view["title"] == "calls-rejected" else set()
        )  # a line that is no JSON has no id
        times = [hit["_source"][data_view["timeFieldName"]] for hit in hits]
        assert times == sorted(times, reverse=True)
        shared_names = [set(hit["_source"]) & set(hit["fields"]) for hit in hits]
        assert all(set(attributes["columns"]) - optional <= names for names in shared_names)
        assert not any("vector" in span for hit in hits for span in hit["_source"].get("spans", ()))
        assert not {name for hit in hits for name in hit["_source"]} & {
            "tokens",
            "layout",
            "source_hash",
        }
