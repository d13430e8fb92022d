"""Saved objects for OpenSearch Dashboards and Kibana: of the shape that the products export, naming nothing that our indexes do not have, and true.

Neither product runs here. Their shapes were read in their repositories and exports: for OpenSearch Dashboards ``vb_saved_objects.ndjson`` and the
migrations (7.9.3 is the newest shape of a dashboard, in 3.x too), for Kibana ``managed_content.json`` and exports of 8.13.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from hybrid_search import mappings
from hybrid_search.backends.base import IndexSpec
from hybrid_search.backends.options import IndexOptions
from hybrid_search.backends.server.base import Server
from tests import live

FILES = {"opensearch": "dashboards", "elasticsearch": "kibana"}
"""The folder of each engine's own product."""

Saved = dict[str, Any]

VERSIONS = {
    "opensearch": {"index-pattern": "7.6.0", "search": "7.9.3", "visualization": "7.10.0", "dashboard": "7.9.3"},
    "elasticsearch": {"index-pattern": "8.0.0", "search": "8.0.0", "visualization": "8.5.0", "dashboard": "8.9.0"},
}
"""Of each type's shape, as OpenSearch Dashboards 2.x and 3.x and Kibana 8.13 write it. A later product brings it up to date when it is imported."""

IDS = {
    *("hybrid-search-calls", "hybrid-search-calls-rejected"),
    *("hybrid-search-calls-passages", "hybrid-search-calls-refusals"),
    *("hybrid-search-calls-documents", "hybrid-search-calls-amounts", "hybrid-search-calls-over-time", "hybrid-search-calls-most-spans"),
    *("hybrid-search-calls-refused-over-time", "hybrid-search-calls-refused-by-reason"),
}
"""Written out: an object that is imported anew replaces the one of its id, and a changed id would leave the old one there."""


@cache
def read(engine: str) -> tuple[Saved, ...]:
    text = (mappings.FOLDER / FILES[engine] / "calls.ndjson").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


def of(engine: str, *types: str) -> list[Saved]:
    return [each for each in read(engine) if each["type"] in types]


EVERY = pytest.mark.parametrize("engine", FILES)
LOOKS = [(engine, each["id"]) for engine in FILES for each in of(engine, "search", "visualization")]


def found(engine: str, id_: str, type_: str | None = None) -> Saved:
    (one,) = [each for each in read(engine) if each["id"] == id_ and (type_ is None or each["type"] == type_)]
    return one


def source(saved: Saved) -> dict[str, Any]:
    """What is searched: the query, and where by reference."""
    told: dict[str, Any] = json.loads(saved["attributes"]["kibanaSavedObjectMeta"]["searchSourceJSON"])
    return told


def state(saved: Saved) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(saved["attributes"]["visState"])
    return told


def view(engine: str, saved: Saved) -> Saved:
    """The data view that a search or visualization refers to."""
    (reference,) = saved["references"]
    assert reference["name"] == source(saved)["indexRefName"]
    return found(engine, reference["id"], "index-pattern")


def fields(engine: str, index: str) -> set[str]:
    """Every field of an index, sub-fields too, by its mapping."""
    spec = IndexSpec("mini", "0123abcd", 4, "int8", "turn", "6/1")
    made = {"calls": mappings.body(engine, spec, IndexOptions(), (9, 9, 9)), "calls-rejected": mappings.rejected(engine)}[index]
    return set(_named(made["mappings"]["properties"], ""))


def _named(properties: dict[str, Any], prefix: str) -> Iterator[str]:
    for name, told in properties.items():
        yield f"{prefix}{name}"
        yield from _named({**told.get("properties", {}), **told.get("fields", {})}, f"{prefix}{name}.")


def names(saved: Saved) -> set[str]:
    """The fields that an object names."""
    if saved["type"] == "search":
        return {*saved["attributes"]["columns"], *(name for name, _ in saved["attributes"]["sort"]), *asked(saved)}
    return {agg["params"]["field"] for agg in state(saved)["aggs"] if "field" in agg["params"]} | set(asked(saved))


def asked(saved: Saved) -> dict[str, int]:
    """The query of an object: nothing, or one field and its number, as in ``ordinal: 0``."""
    query = source(saved)["query"]
    assert query["language"] == "kuery"
    name, _, value = query["query"].partition(": ")
    return {name: int(value)} if name else {}


# Shape


@EVERY
def test_the_objects_and_their_ids_are_these(engine: str) -> None:
    assert {each["id"] for each in read(engine) if each["type"] != "dashboard"} == IDS
    keys = [(each["type"], each["id"]) for each in read(engine)]
    assert len(keys) == len(set(keys)) == len(IDS) + 1
    assert [each["id"] for each in of(engine, "dashboard")] == ["hybrid-search-calls"]


@EVERY
def test_every_object_says_of_which_version_its_shape_is(engine: str) -> None:
    for each in read(engine):
        if engine == "opensearch":
            assert each["migrationVersion"] == {each["type"]: VERSIONS[engine][each["type"]]}
        else:
            assert (each["typeMigrationVersion"], each["coreMigrationVersion"]) == (VERSIONS[engine][each["type"]], "8.8.0")


@EVERY
def test_an_object_has_the_keys_that_an_import_reads_and_none_that_only_one_installation_has(engine: str) -> None:
    version = {"migrationVersion"} if engine == "opensearch" else {"typeMigrationVersion", "coreMigrationVersion", "managed"}
    assert all(set(each) == {"type", "id", "attributes", "references"} | version for each in read(engine))


@EVERY
def test_every_reference_leads_to_an_object_of_the_same_file_that_stands_before_it(engine: str) -> None:
    seen: set[tuple[str, str]] = set()
    for each in read(engine):
        assert {(reference["type"], reference["id"]) for reference in each["references"]} <= seen, each["id"]
        seen.add((each["type"], each["id"]))


@EVERY
def test_json_inside_json_is_json(engine: str) -> None:
    """Both products keep parts of an object as text, and show an error page where it cannot be read."""
    texts = [
        (each["id"], value)
        for each in read(engine)
        for name, value in each["attributes"].items()
        if name.endswith(("JSON", "State", "fields", "Filters"))
    ]
    assert len(texts) > 2 * len(of(engine, "visualization"))
    assert all(isinstance(json.loads(value), dict | list) for _, value in texts)


@EVERY
def test_a_visualization_is_named_alike_in_its_list_and_in_itself(engine: str) -> None:
    assert all(state(each)["title"] == each["attributes"]["title"] for each in of(engine, "visualization"))


@EVERY
def test_the_series_of_a_chart_are_its_metrics(engine: str) -> None:
    for each in of(engine, "visualization"):
        told = state(each)
        metrics = {agg["id"] for agg in told["aggs"] if agg["schema"] == "metric"}
        assert {series["data"]["id"] for series in told["params"].get("seriesParams", [])} <= metrics
        assert {agg["params"]["orderBy"] for agg in told["aggs"] if agg["type"] == "terms"} <= metrics
        assert len({agg["id"] for agg in told["aggs"]}) == len(told["aggs"])


@EVERY
def test_the_dashboard_shows_every_visualization_and_the_passages_and_no_two_panels_overlap(engine: str) -> None:
    (board,) = of(engine, "dashboard")
    panels = json.loads(board["attributes"]["panelsJSON"])
    shown = {reference["id"] for reference in board["references"]}
    assert shown == {each["id"] for each in of(engine, "visualization")} | {"hybrid-search-calls-passages"}
    cells = [(x, y) for each in panels for x, y in _cells(each["gridData"])]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 48  # the columns of both products' grids


def _cells(grid: dict[str, int]) -> Iterator[tuple[int, int]]:
    yield from ((x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"]))


@EVERY
def test_a_panel_finds_what_it_shows_by_the_name_that_its_product_gives_references(engine: str) -> None:
    """Kibana puts the panel's own index before the name; OpenSearch Dashboards numbers them."""
    (board,) = of(engine, "dashboard")
    by_name = {reference["name"]: reference for reference in board["references"]}
    for each in json.loads(board["attributes"]["panelsJSON"]):
        assert each["gridData"]["i"] == each["panelIndex"]
        name = each["panelRefName"] if engine == "opensearch" else f"{each['panelIndex']}:{each['panelRefName']}"
        reference = by_name.pop(name)
        assert engine == "opensearch" or reference["type"] == each["type"]
    assert not by_name


def test_both_products_are_asked_the_same() -> None:
    """The same ids, fields, queries, aggregations: what differs is how each product writes them."""
    ours = {name: {each["id"]: said(each) for each in of(name, "search", "visualization")} for name in FILES}
    assert ours["opensearch"] == ours["elasticsearch"]


def said(saved: Saved) -> tuple[Any, ...]:
    if saved["type"] == "search":
        return saved["attributes"]["title"], asked(saved), saved["attributes"]["columns"], saved["attributes"]["sort"]
    own = ("useNormalizedEsInterval", "useNormalizedOpenSearchInterval", "includeIsRegex", "excludeIsRegex")
    aggs = [{**agg, "params": {name: value for name, value in agg["params"].items() if name not in own}} for agg in state(saved)["aggs"]]
    return saved["attributes"]["title"], saved["attributes"]["description"], asked(saved), state(saved)["type"], aggs


# Fields


@EVERY
def test_data_views_are_the_alias_and_its_notes_and_their_times_are_dates(engine: str) -> None:
    for title, time in (("calls", "indexed_at"), ("calls-rejected", "at")):
        (one,) = [each for each in of(engine, "index-pattern") if each["attributes"]["title"] == title]
        assert one["attributes"]["timeFieldName"] == time
        assert time in fields(engine, title)


@pytest.mark.parametrize(("engine", "id_"), LOOKS)
def test_every_field_that_an_object_names_is_one_of_its_index(engine: str, id_: str) -> None:
    saved = found(engine, id_)
    known = fields(engine, view(engine, saved)["attributes"]["title"])
    assert names(saved)
    assert not {name for name in names(saved) - known if not name.startswith("metadata.")}


@EVERY
def test_what_nobody_can_read_is_not_fetched_to_be_looked_at(engine: str) -> None:
    """500 passages, which is what the products fetch for a page, have 50 MB of vectors and codes."""
    hidden = {each["value"] for each in json.loads(found(engine, "hybrid-search-calls", "index-pattern")["attributes"]["sourceFilters"])}
    assert {"spans", "spans.*", "tokens"} <= hidden
    assert {name.removesuffix(".*") for name in hidden} <= fields(engine, "calls")
    assert not hidden & {name for each in of(engine, "search", "visualization") for name in names(each)}


@EVERY
def test_every_name_of_the_index_can_be_replaced_at_once(engine: str) -> None:
    """For an index of another name: ``sed s/calls/tickets/g`` gives a file of objects that are all its own."""
    text = (mappings.FOLDER / FILES[engine] / "calls.ndjson").read_text(encoding="utf-8").replace("calls", "tickets")
    objects = [json.loads(line) for line in text.splitlines()]
    assert all("tickets" in each["id"] and "tickets" in each["attributes"]["title"] for each in objects)
    assert not {each["id"] for each in objects} & {each["id"] for each in read(engine)}


# Numbers: what the objects ask, asked of real servers

SPANS = {"a": (4, 5, 6), "b": (2,), "c": (1, 2)}
"""Spans of each passage of three calls. The third says that it has three passages: one was lost."""
DAYS = {"a": "2026-01-01", "b": "2026-01-02", "c": "2026-01-02"}
SHOULD = {"a": 3, "b": 1, "c": 3}
LONG = "r" * 1025
REFUSALS = (("2026-01-01", "no id"), ("2026-01-02", "empty text"), ("2026-01-02", "empty text"), ("2026-01-02", LONG))


@dataclass(frozen=True, slots=True)
class Filled:
    """A server with an index of passages and one of refusals, each by the title of its data view."""

    server: Server
    indexes: dict[str, str]

    @property
    def engine(self) -> str:
        return self.server.engine

    def search(self, saved: Saved, body: dict[str, Any]) -> dict[str, Any]:
        index = self.indexes[view(self.engine, saved)["attributes"]["title"]]
        answer: dict[str, Any] = self.server.request("POST", f"/{index}/_search", body=body)
        return answer


def passages() -> Iterator[dict[str, Any]]:
    for id_, counts in SPANS.items():
        for ordinal, count in enumerate(counts):
            told = {"document_id": id_, "ordinal": ordinal, "passages": SHOULD[id_], "source_hash": "0", "indexed_at": f"{DAYS[id_]}T10:00:00+00:00"}
            spans = [{"start": each, "end": each + 1, "vector": [1.0, 0.0, 0.0, 0.0]} for each in range(count)]
            shown = {"start": 0, "end": 5, "text": "hello", "metadata": {"sector": "bank"}, "span_count": count, "layout": "[]"}
            yield {**told, **shown, "tokens": "AAECAw==", "spans": spans}


def refusals() -> Iterator[dict[str, Any]]:
    for line, (day, reason) in enumerate(REFUSALS, 1):
        yield {"index": "calls", "at": f"{day}T10:00:00+00:00", "source": "calls.jsonl", "line": line, "reason": reason}


def write(server: Server, index: str, documents: Iterator[dict[str, Any]]) -> None:
    action: dict[str, Any] = {"index": {}}
    lines = [line for each in documents for line in (action, each)]
    assert not server.request("POST", f"/{index}/_bulk", params={"refresh": True}, lines=lines)["errors"]


@pytest.fixture(scope="module", params=live.URLS)
def filled(request: pytest.FixtureRequest) -> Iterator[Filled]:
    options = IndexOptions(analyzer="standard", replicas=0)
    spec = IndexSpec("mini", "0123abcd", 4, "int8", "turn", "6/1")
    with live.opened(request.param) as server:
        body = mappings.body(server.engine, spec, options, server.version)
        with live.scratch(server, body) as index, live.scratch(server, mappings.rejected(server.engine, options)) as refused:
            write(server, index, passages())
            write(server, refused, refusals())
            yield Filled(server, {"calls": index, "calls-rejected": refused})


def request_of(saved: Saved) -> dict[str, Any]:
    """The request that a product makes for a visualization: its metrics, inside its bucket where it has one. An automatic interval is a day here."""
    told = state(saved)["aggs"]
    aggs = {agg["id"]: {agg["type"]: {"field": agg["params"]["field"]}} for agg in metrics(told) if agg["type"] != "count"}
    for agg in buckets(told):
        aggs = {agg["id"]: {agg["type"]: _terms(agg["params"], told) if agg["type"] == "terms" else _days(agg["params"]), "aggs": aggs}}
    query = {"bool": {"filter": [{"match": {name: value}} for name, value in asked(saved).items()]}}
    return {"size": 0, "track_total_hits": True, "query": query, "aggs": aggs}


def metrics(aggs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [agg for agg in aggs if agg["schema"] == "metric"]


def buckets(aggs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [agg for agg in aggs if agg["schema"] != "metric"]


def _terms(params: dict[str, Any], aggs: list[dict[str, Any]]) -> dict[str, Any]:
    (by,) = [agg for agg in aggs if agg["id"] == params["orderBy"]]
    missing = {"missing": "__missing__"} if params["missingBucket"] else {}
    return {"field": params["field"], "size": params["size"], "order": {"_count" if by["type"] == "count" else by["id"]: params["order"]}, **missing}


def _days(params: dict[str, Any]) -> dict[str, Any]:
    assert params["interval"] == "auto"
    return {"field": params["field"], "fixed_interval": "1d", "format": "yyyy-MM-dd", "min_doc_count": params["min_doc_count"]}


def shown(filled: Filled, id_: str) -> list[tuple[Any, ...]]:
    """What a visualization shows: its metrics in their order, behind the key of each bucket where it has any."""
    saved = found(filled.engine, f"hybrid-search-calls-{id_}")
    answer, aggs = filled.search(saved, request_of(saved)), state(saved)["aggs"]
    for bucket in buckets(aggs):
        rows = answer["aggregations"][bucket["id"]]["buckets"]
        return [(row.get("key_as_string", row["key"]), *_values(row, aggs)) for row in rows]
    return [tuple(_values({**answer.get("aggregations", {}), "doc_count": answer["hits"]["total"]["value"]}, aggs))]


def _values(row: dict[str, Any], aggs: list[dict[str, Any]]) -> list[Any]:
    return [row["doc_count"] if agg["type"] == "count" else row[agg["id"]]["value"] for agg in metrics(aggs)]


@pytest.mark.server
def test_documents_are_counted_once_each(filled: Filled) -> None:
    assert shown(filled, "documents") == [(len(SPANS),)]
    assert shown(filled, "over-time") == [("2026-01-01", 1), ("2026-01-02", 2)]


@pytest.mark.server
def test_passages_and_spans_are_counted_and_spans_a_passage_is_their_mean(filled: Filled) -> None:
    """4 + 5 + 6 + 2 + 1 + 2 = 20 spans of 6 passages."""
    assert shown(filled, "amounts") == [(6, 20, pytest.approx(20 / 6))]


@pytest.mark.server
def test_spans_a_document_stand_beside_the_passages_that_it_has_and_should_have(filled: Filled) -> None:
    assert shown(filled, "most-spans") == [("a", 15, 3, 3), ("c", 3, 2, 3), ("b", 2, 1, 1)]


@pytest.mark.server
def test_refusals_are_counted_by_day_and_by_reason_also_those_too_long_for_a_keyword(filled: Filled) -> None:
    assert shown(filled, "refused-over-time") == [("2026-01-01", 1), ("2026-01-02", 3)]
    counted = shown(filled, "refused-by-reason")
    assert counted[0] == ("empty text", 2)
    assert set(counted[1:]) == {("no id", 1), ("__missing__", 1)}


@pytest.mark.server
def test_a_saved_search_gives_its_columns_and_none_of_what_its_data_view_hides(filled: Filled) -> None:
    """OpenSearch Dashboards reads the source, Kibana asks for fields."""
    for saved in of(filled.engine, "search"):
        where, attributes = view(filled.engine, saved)["attributes"], saved["attributes"]
        hidden = [each["value"] for each in json.loads(where["sourceFilters"])]
        body = {"sort": [{name: order} for name, order in attributes["sort"]], "_source": {"excludes": hidden}, "fields": attributes["columns"]}
        hits = filled.search(saved, body)["hits"]["hits"]
        optional = {"document_id"} if where["title"] == "calls-rejected" else set()  # a line that is no JSON has no id
        times = [hit["_source"][where["timeFieldName"]] for hit in hits]
        assert times == sorted(times, reverse=True)
        assert all(set(attributes["columns"]) - optional <= set(hit["_source"]) & set(hit["fields"]) for hit in hits)
        assert not {name for hit in hits for name in hit["_source"]} & {"spans", "tokens", "layout", "source_hash"}
