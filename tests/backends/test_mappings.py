"""The bodies that create indexes: exactly the fields of a passage, and every placeholder filled.

Vectors are stored as the version of the server allows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid_search.backends.index_options import QUANTIZATIONS, IndexOptions
from hybrid_search.backends.server import mappings, passage_codec
from hybrid_search.backends.server.dialects import DIALECTS
from hybrid_search.backends.server.dialects.base import Version
from hybrid_search.backends.server.graph_vectors import GraphVectors
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.types import IndexSpec
from hybrid_search.errors import ServerError, UsageError
from tests.helpers import live_servers, tiny_encoder
from tests.helpers.server_index import GRAPH as BYTE_GRAPH

ROOT = Path(__file__).parents[2] / "mappings"
SPEC = IndexSpec("mini", "0123abcd", 384, "int8", "turn", "6/1", schema=1)
NEWEST: dict[str, Version] = {"opensearch": (3, 9, 0), "elasticsearch": (9, 5, 3)}
FILES = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("*/*.json"))]

SPAN_FIELDS = {"start", "end", "text", "vector"}
PASSAGE_FIELDS = {
    *("document_id", "ordinal", "passages", "start", "end"),  # where it is
    *("text", "texts", "metadata", "layout", "span_count"),  # what it is
    *("speakers", "call_date"),  # what dashboards filter by
    *("dates", "numbers"),  # what texts of the metadata are
    "turn_speakers",
    *("source_hash", "indexed_at"),  # of which writing
    *("tokens", "spans"),  # what it is found by
}
"""The fields of a passage, written out: whoever adds one sees that it is stored for every passage
of every call.
"""
ATTACHED_FIELDS = {"source_version", "text_hash"}
"""What the passages of an attached index have besides."""


def leaves(
    node: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield everything in `node` that is neither object nor list, with its path."""
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from leaves(value, (*path, key))
    else:
        yield path, node


def make_body(
    engine: str,
    options: IndexOptions | None = None,
    version: Version | None = None,
    spec: IndexSpec = SPEC,
) -> dict[str, Any]:
    return mappings.index_body(engine, spec, options or IndexOptions(), version or NEWEST[engine])


def properties(engine: str, options: IndexOptions | None = None) -> dict[str, Any]:
    fields: dict[str, Any] = make_body(engine, options)["mappings"]["properties"]
    return fields


def vector_mapping(engine: str, version: Version, **options: Any) -> dict[str, Any]:
    """Return the mapping of the vector on a server of `version`."""
    field: dict[str, Any] = make_body(engine, IndexOptions(**options), version)["mappings"][
        "properties"
    ]["spans"]["properties"]["vector"]
    return field


def read_json(file: str) -> Any:
    return json.loads((ROOT / file).read_text(encoding="utf-8"))


# Fields and settings


@pytest.mark.parametrize("engine", DIALECTS)
def test_a_server_has_the_fields_of_a_passage_and_takes_no_other(engine: str) -> None:
    assert set(properties(engine)) == PASSAGE_FIELDS | ATTACHED_FIELDS
    assert set(properties(engine)["spans"]["properties"]) == SPAN_FIELDS
    assert make_body(engine)["mappings"]["dynamic"] == "strict"


def test_the_writer_fills_these_fields_and_no_other() -> None:
    text = "wo bleibt mein Geld"
    document = {"id": "a", "text": text, "date": "2026-01-01", "n": "7", "language": "de"}
    (entry,) = tiny_encoder.make_entries(document)
    passage_source = passage_codec.build_source(
        entry, tiny_encoder.make_spec(), "2026-01-02T03:04:05+00:00", BYTE_GRAPH
    )
    assert set(passage_source) == PASSAGE_FIELDS
    assert passage_source["texts"] == {"de": text}
    assert {name for span in passage_source["spans"] for name in span} == SPAN_FIELDS
    for span in passage_source["spans"]:
        assert text[span["start"] : span["end"]] == span["text"]


def test_both_servers_are_told_the_same_but_for_vectors() -> None:
    mappings_by_engine = {
        engine: make_body(engine, IndexOptions(quantization="none"))["mappings"]
        for engine in DIALECTS
    }
    vectors = {
        engine: index_mapping["properties"]["spans"]["properties"].pop("vector")
        for engine, index_mapping in mappings_by_engine.items()
    }
    assert mappings_by_engine["opensearch"] == mappings_by_engine["elasticsearch"]
    assert vectors["opensearch"]["type"] == "knn_vector"
    assert vectors["elasticsearch"]["type"] == "dense_vector"


@pytest.mark.parametrize(("option", "numbers"), [(None, 192), (64, 64), (384, 384), (1000, 384)])
@pytest.mark.parametrize(
    ("engine", "parameter"), [("opensearch", "dimension"), ("elasticsearch", "dims")]
)
def test_the_graph_has_the_numbers_that_are_asked_for_and_no_more_than_the_model(
    engine: str, parameter: str, option: int | None, numbers: int
) -> None:
    options = {} if option is None else {"graph_dimension": option}
    assert vector_mapping(engine, NEWEST[engine], **options)[parameter] == numbers


@pytest.mark.parametrize("engine", DIALECTS)
def test_the_analyzer_is_english_or_the_one_that_is_given(engine: str) -> None:
    assert properties(engine)["text"]["analyzer"] == "english"
    assert properties(engine, IndexOptions(analyzer="standard"))["text"]["analyzer"] == "standard"


@pytest.mark.parametrize("engine", DIALECTS)
def test_english_is_defined_in_the_index_with_folded_accents_and_other_analyzers_are_not(
    engine: str,
) -> None:
    english = make_body(engine)["settings"]["index"]["analysis"]["analyzer"]["english"]
    assert english["tokenizer"] == "standard"
    assert english["filter"][-2:] == ["asciifolding", "porter_stem"]
    assert "analysis" not in make_body(engine, IndexOptions("standard"))["settings"]["index"]


@pytest.mark.parametrize("engine", DIALECTS)
def test_an_index_has_one_shard_and_the_replicas_of_the_server_unless_others_are_given(
    engine: str,
) -> None:
    knn = {"knn": True} if engine == "opensearch" else {}
    settings = {
        **knn,
        "number_of_shards": 1,
        "refresh_interval": "30s",
        "codec": "best_compression",
    }
    if engine == "elasticsearch":
        settings["dense_vector.hnsw_enable_early_termination"] = False
    options = IndexOptions("standard")
    assert make_body(engine, options)["settings"] == {"index": settings}
    options = IndexOptions("standard", shards=3, replicas=0)
    assert make_body(engine, options)["settings"] == {
        "index": {**settings, "number_of_shards": 3, "number_of_replicas": 0}
    }


@pytest.mark.parametrize(("version", "is_forbidden"), [((9, 2, 9), False), ((9, 3, 0), True)])
def test_elasticsearch_may_not_end_a_search_early_where_it_would(
    version: Version, is_forbidden: bool
) -> None:
    """Older versions do not know the setting, and refuse an index that has it."""
    settings = make_body("elasticsearch", version=version)["settings"]["index"]
    assert (settings.get("dense_vector.hnsw_enable_early_termination") is False) == is_forbidden


@pytest.mark.parametrize("engine", DIALECTS)
def test_an_index_says_what_it_was_made_for_and_how(engine: str) -> None:
    meta = make_body(engine, IndexOptions(analyzer="standard"))["mappings"]["_meta"]
    assert IndexSpec(**meta["hybrid_search"]) == SPEC
    assert meta["options"] == {
        "analyzer": "standard",
        "knn_engine": "lucene",
        "quantization": "byte",
        "graph_dimension": 192,
        "m": 16,
        "ef_construction": 100,
    }


@pytest.mark.parametrize("engine", DIALECTS)
def test_what_is_sent_is_the_file_in_the_repository_with_its_placeholders_filled(
    engine: str,
) -> None:
    """Only the placeholders of the vector and of the analysis are replaced by objects."""
    file_leaves, body = (
        dict(leaves(read_json(f"{engine}/passages.json"))),
        make_body(engine, IndexOptions(replicas=0)),
    )
    body["mappings"]["properties"]["spans"]["properties"]["vector"] = "filled"
    body["settings"]["index"]["analysis"] = "filled"
    body_leaves = dict(leaves(body))
    assert set(body_leaves) == set(file_leaves)
    changed = {path for path, value in file_leaves.items() if value != body_leaves[path]}
    assert changed == {path for path, value in file_leaves.items() if str(value).startswith("$")}
    assert not [value for _, value in leaves(make_body(engine)) if str(value).startswith("$")]


def test_there_are_the_same_files_for_every_engine_and_for_no_other() -> None:
    stems = ("analysis", "matches", "passages", "rejected", "vectors")
    names = [f"{stem}.json" for stem in stems]
    assert set(FILES) == {f"{engine}/{name}" for engine in DIALECTS for name in names}


@pytest.mark.parametrize("engine", ["solr", "", "OpenSearch", "../mappings/opensearch"])
def test_a_server_of_another_kind_is_an_error_that_names_those_there_are(engine: str) -> None:
    with pytest.raises(UsageError, match=" or ".join(DIALECTS)):
        mappings.index_body(engine, SPEC, IndexOptions(), (9, 9, 9))
    with pytest.raises(UsageError, match=" or ".join(DIALECTS)):
        mappings.notes_body("rejected", engine)
    with pytest.raises(UsageError, match=" or ".join(DIALECTS)):
        mappings.notes_body("matches", engine)


@pytest.mark.parametrize("engine", DIALECTS)
def test_notes_on_refused_documents_have_no_place_for_the_document(engine: str) -> None:
    """A rejected document may be private; the rejects file on the worker's disk has it."""
    body = mappings.notes_body("rejected", engine, IndexOptions(replicas=0))
    fields = {"index", "at", "source", "line", "reason", "document_id"}
    assert set(body["mappings"]["properties"]) == fields
    assert body["mappings"]["dynamic"] == "strict"
    assert body["settings"]["index"] == {"number_of_shards": 1, "number_of_replicas": 0}
    assert mappings.notes_body("rejected", engine)["settings"]["index"] == {"number_of_shards": 1}


@pytest.mark.parametrize("engine", DIALECTS)
def test_a_note_is_taken_however_long_what_it_names_is(engine: str) -> None:
    """A keyword of over 32,766 bytes makes Lucene refuse the whole note.

    An id of that length may be the very reason of a refusal.
    """
    bytes_ = 4  # of a code point, at most
    fields = mappings.notes_body("rejected", engine)["mappings"]["properties"]
    assert all(bytes_ * fields[name]["ignore_above"] <= 32766 for name in ("source", "document_id"))
    assert bytes_ * fields["reason"]["fields"]["keyword"]["ignore_above"] <= 32766


# How a vector is kept: (engine, knn_engine, quantization, the version before it, the first that has
# it, what tells it in the mapping)

LUCENE = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
FAISS = {"name": "hnsw", "engine": "faiss", "space_type": "innerproduct"}
GRAPH = {"m": 7, "ef_construction": 77}


def sq_parameters(**parameters: Any) -> dict[str, Any]:
    """Return the parameters of a graph whose vectors the scalar quantizer stores."""
    return {
        **GRAPH,
        "encoder": {"name": "sq", **({"parameters": parameters} if parameters else {})},
    }


def on_disk_mapping(level: str) -> dict[str, Any]:
    method = {"name": "hnsw", "engine": "faiss", "parameters": GRAPH}
    return {
        "space_type": "innerproduct",
        "mode": "on_disk",
        "compression_level": level,
        "method": method,
    }


BYTES = {"element_type": "byte", "similarity": "cosine"}


def graph_by(method: dict[str, str], parameters: dict[str, Any] = GRAPH) -> dict[str, Any]:
    return {"method": {**method, "parameters": parameters}}


def hnsw(kind: str = "hnsw") -> dict[str, Any]:
    return {"index_options": {"type": kind, **GRAPH}}


GATES_BY_ENGINE: dict[str, list[tuple[str, str, Version, Version, dict[str, Any]]]] = {
    "opensearch": [
        ("lucene", "byte", (2, 11, 1), (2, 12, 0), {"data_type": "byte", **graph_by(LUCENE)}),
        ("lucene", "none", (2, 11, 1), (2, 12, 0), graph_by(LUCENE)),
        ("lucene", "int8", (2, 15, 0), (2, 16, 0), graph_by(LUCENE, sq_parameters())),
        ("lucene", "int4", (3, 8, 0), (3, 9, 0), graph_by(LUCENE, sq_parameters(bits=4))),
        ("lucene", "binary", (3, 5, 0), (3, 6, 0), graph_by(LUCENE, sq_parameters(bits=1))),
        ("faiss", "none", (2, 11, 1), (2, 12, 0), graph_by(FAISS)),
        ("faiss", "fp16", (2, 12, 0), (2, 13, 0), graph_by(FAISS, sq_parameters(type="fp16"))),
        ("faiss", "int4", (2, 16, 0), (2, 17, 0), on_disk_mapping("8x")),
        ("faiss", "binary", (2, 16, 0), (2, 17, 0), on_disk_mapping("32x")),
    ],
    "elasticsearch": [
        ("lucene", "byte", (8, 12, 2), (8, 13, 0), {**BYTES, **hnsw()}),
        ("lucene", "none", (8, 12, 2), (8, 13, 0), hnsw()),
        ("lucene", "int8", (8, 12, 2), (8, 13, 0), hnsw("int8_hnsw")),
        ("lucene", "int4", (8, 14, 3), (8, 15, 0), hnsw("int4_hnsw")),
        ("lucene", "binary", (8, 17, 9), (8, 18, 0), hnsw("bbq_hnsw")),
        ("lucene", "fp16", (9, 2, 9), (9, 3, 0), {"element_type": "bfloat16", **hnsw()}),
    ],
}
GATES = [(engine, *gate) for engine, gates in GATES_BY_ENGINE.items() for gate in gates]
GATE_KEYS = [gate[:3] for gate in GATES]
BASE: dict[str, dict[str, Any]] = {
    "opensearch": {"type": "knn_vector", "dimension": 192},
    "elasticsearch": {
        "type": "dense_vector",
        "dims": 192,
        "similarity": "dot_product",
        "index": True,
    },
}


def test_the_gates_of_this_test_are_those_of_the_files() -> None:
    rows = [
        (engine, row["knn_engine"], row["quantization"])
        for engine in DIALECTS
        for row in read_json(f"{engine}/vectors.json")
    ]
    assert set(GATE_KEYS) == set(rows)


@pytest.mark.parametrize(
    ("engine", "knn_engine", "quantization", "before", "since", "expected"), GATES
)
def test_a_quantization_is_refused_before_its_version_and_taken_from_it_on(
    engine: str,
    knn_engine: str,
    quantization: str,
    before: Version,
    since: Version,
    expected: dict[str, Any],
) -> None:
    options: dict[str, Any] = {"knn_engine": knn_engine, "quantization": quantization, **GRAPH}
    assert vector_mapping(engine, since, **options) == {**BASE[engine], **expected}
    message = (
        f"{DIALECTS[engine].title} {'.'.join(map(str, before))} has no "
        f".*{knn_engine}.*{quantization}.*needs .* {since[0]}.{since[1]} or newer"
    )
    with pytest.raises(UsageError, match=message):
        vector_mapping(engine, before, **options)


@pytest.mark.parametrize(
    ("knn_engine", "quantization", "expected"),
    [
        ("lucene", "int8", sq_parameters(bits=7)),
        ("faiss", "fp16", sq_parameters(bits=16, type="fp16")),
    ],
)
def test_opensearch_is_told_the_bits_of_an_encoder_from_3_6_on_which_wants_them(
    knn_engine: str, quantization: str, expected: dict[str, Any]
) -> None:
    options: dict[str, Any] = {"knn_engine": knn_engine, "quantization": quantization, **GRAPH}
    newer, older = (
        vector_mapping("opensearch", version, **options)["method"]["parameters"]
        for version in ((3, 6, 0), (3, 5, 9))
    )
    assert newer == expected
    assert "bits" not in older["encoder"].get("parameters", {})


@pytest.mark.parametrize("engine", DIALECTS)
def test_no_two_rows_hold_for_one_version_and_each_version_has_one_default(engine: str) -> None:
    rows = read_json(f"{engine}/vectors.json")
    versions: list[Version] = [(major, minor, 0) for major in (2, 3, 8, 9) for minor in range(20)]
    for version in versions:
        matching_rows = [row for row in rows if mappings._supports(row, version)]
        names = [(row["knn_engine"], row["quantization"]) for row in matching_rows]
        assert len(names) == len(set(names))
        defaults = [row["knn_engine"] for row in matching_rows if row.get("default", False)]
        assert sorted(defaults) == sorted({row["knn_engine"] for row in matching_rows})


@pytest.mark.parametrize(
    ("engine", "version", "options", "message"),
    [
        (
            "opensearch",
            (2, 15, 0),
            {"quantization": "int8"},
            "OpenSearch 2.16 or newer). Use quantization byte, none",
        ),
        (
            "opensearch",
            (3, 5, 0),
            {"quantization": "fp16"},
            "(no version has it). Use quantization byte, none, int8 or knn_engine faiss",
        ),
        (
            "opensearch",
            (3, 5, 0),
            {"knn_engine": "faiss", "quantization": "int8"},
            "Use quantization none, fp16, int4, binary or knn_engine lucene",
        ),
        (
            "opensearch",
            (2, 11, 0),
            {},
            "OpenSearch 2.11.0 has no knn_engine 'lucene' (it needs OpenSearch 2.12 or newer). "
            "Use a newer server",
        ),
        (
            "elasticsearch",
            (9, 2, 0),
            {"quantization": "fp16"},
            "Elasticsearch 9.3 or newer). Use quantization byte, none, int8, int4, binary",
        ),
        (
            "elasticsearch",
            (9, 5, 3),
            {"knn_engine": "faiss"},
            "Elasticsearch 9.5.3 has no knn_engine 'faiss' (no version has it). Use knn_engine "
            "lucene",
        ),
    ],
)
def test_what_a_server_does_not_have_is_an_error_that_names_what_it_has(
    engine: str, version: Version, options: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message) + "$"):
        make_body(engine, IndexOptions(**options), version)


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
@pytest.mark.parametrize("knn_engine", ["lucene", "faiss"])
@pytest.mark.parametrize("engine", DIALECTS)
def test_every_combination_is_either_made_or_refused_with_a_remedy(
    engine: str, knn_engine: str, quantization: str
) -> None:
    options = IndexOptions(knn_engine=knn_engine, quantization=quantization)
    if (engine, knn_engine, quantization) in GATE_KEYS:
        assert (
            make_body(engine, options)["mappings"]["_meta"]["options"]["quantization"]
            == quantization
        )
    else:
        with pytest.raises(UsageError, match=r"\(no version has it\)\. Use \w+"):
            make_body(engine, options)


@pytest.mark.parametrize(
    ("quantization", "dimension", "needed"),
    [("binary", 63, "at least 64"), ("int4", 65, "a multiple of 2")],
)
def test_a_quantization_that_does_not_fit_the_dimension_names_both(
    quantization: str, dimension: int, needed: str
) -> None:
    """These are limits of Elasticsearch itself.

    Without the check it would refuse the index with the name of a Java class.
    """
    options, spec = IndexOptions(quantization=quantization), replace(SPEC, dimension=dimension)
    with pytest.raises(UsageError, match=f"{quantization}.*{needed} dimensions.*have {dimension}"):
        make_body("elasticsearch", options, spec=spec)
    assert make_body("elasticsearch", options, spec=replace(SPEC, dimension=64))


# On real servers: lucene alone, since making an index of faiss kills a server without its native
# library

DIMENSION = 64
SERVER_SPEC = replace(SPEC, dimension=DIMENSION)
STANDARD = IndexOptions(analyzer="standard", replicas=0)
"""Options for every distribution: the servers of the tests lack the analyzer english."""


@pytest.fixture(scope="module", params=live_servers.URLS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with live_servers.open_server(request.param) as connected_server:
        yield connected_server


def lucene_bodies(server: Server) -> dict[str, dict[str, Any] | None]:
    """Return the body of an index for each quantization; None if it is refused for this server."""
    bodies: dict[str, dict[str, Any] | None] = {}
    for quantization in QUANTIZATIONS:
        try:
            bodies[quantization] = make_body(
                server.engine,
                replace(STANDARD, quantization=quantization),
                server.version,
                SERVER_SPEC,
            )
        except UsageError:
            bodies[quantization] = None
    return bodies


def unit_vector(axis: int, graph: GraphVectors) -> list[float]:
    """Return a unit vector near one axis, as the writer writes it."""
    vector = np.full(DIMENSION, ((1 - 0.99**2) / (DIMENSION - 1)) ** 0.5, np.float32)
    vector[axis] = 0.99
    return graph.encode_query(vector)


def read_graph(body: dict[str, Any]) -> GraphVectors:
    """Return how an index that is made by this body takes vectors."""
    field = body["mappings"]["properties"]["spans"]["properties"]["vector"]
    return GraphVectors.from_mapping(field, DIMENSION)


def make_passage(axes: tuple[int, ...], graph: GraphVectors) -> dict[str, Any]:
    identity = {
        "document_id": f"call {axes}",
        "ordinal": 0,
        "passages": 1,
        "source_hash": "0",
        "indexed_at": "2026-01-02T03:04:05+00:00",
    }
    spans = [{"start": axis, "end": axis + 1, "vector": unit_vector(axis, graph)} for axis in axes]
    content = {
        "start": 0,
        "end": 5,
        "text": "hello",
        "metadata": {"sector": "bank", "seconds": 1},
        "span_count": len(spans),
        "layout": "[]",
    }
    return {**identity, **content, "tokens": "AAECAw==", "spans": spans}


def nearest_span_search(server: Server, axis: int, graph: GraphVectors) -> dict[str, Any]:
    """Return a search for the passage with a span nearest to `axis`."""
    vector = unit_vector(axis, graph)
    if server.engine == "elasticsearch":
        return {
            "size": 1,
            "knn": {
                "field": "spans.vector",
                "query_vector": vector,
                "k": 2,
                "num_candidates": 10,
            },
        }
    knn = {"knn": {"spans.vector": {"vector": vector, "k": 2}}}
    return {"size": 1, "query": {"nested": {"path": "spans", "score_mode": "max", "query": knn}}}


@pytest.mark.server
def test_an_index_of_every_quantization_is_made_and_its_spans_are_found(server: Server) -> None:
    bodies = {name: body for name, body in lucene_bodies(server).items() if body}
    assert {"byte", "none", "int8"} <= set(bodies)
    for quantization, body in bodies.items():
        graph = read_graph(body)
        with live_servers.scratch_index(server, body) as index:
            for id_, axes in (("a#0", (1, 2, 3)), ("b#0", (4, 5, 6))):
                server.request(
                    "PUT",
                    f"/{index}/_doc/{id_.replace('#', '%23')}",
                    body=make_passage(axes, graph),
                    params={"refresh": True},
                )
            best = [
                server.request(
                    "POST", f"/{index}/_search", body=nearest_span_search(server, axis, graph)
                )["hits"]["hits"][0]
                for axis in (2, 5)
            ]
            assert [hit["_id"] for hit in best] == ["a#0", "b#0"], quantization
            is_rounded_by_server = quantization not in ("byte", "none")
            assert is_rounded_by_server or [hit["_score"] for hit in best] == pytest.approx(
                [1, 1], abs=1e-3
            )


@pytest.mark.server
def test_what_our_gates_refuse_the_server_refuses_too(server: Server) -> None:
    """Otherwise a check would be too strict.

    Each body is the one for a version that supports it.
    """
    missing = [
        name
        for name, body in lucene_bodies(server).items()
        if body is None and (server.engine, "lucene", name) in GATE_KEYS
    ]
    for quantization in missing:
        body = make_body(
            server.engine, replace(STANDARD, quantization=quantization), (99, 0, 0), SERVER_SPEC
        )
        with pytest.raises(ServerError, match="400"), live_servers.scratch_index(server, body):
            pass


@pytest.mark.server
@pytest.mark.parametrize("field", ["speaker", "spans.words"])
def test_a_field_that_is_none_of_ours_is_refused(server: Server, field: str) -> None:
    body = make_body(server.engine, STANDARD, server.version, SERVER_SPEC)
    wrong = make_passage((1, 2, 3), read_graph(body))
    if field == "speaker":
        wrong["speaker"] = "agent"
    else:
        wrong["spans"][0]["words"] = "hello"
    with (
        live_servers.scratch_index(server, body) as index,
        pytest.raises(ServerError, match="strict"),
    ):
        server.request("PUT", f"/{index}/_doc/1", body=wrong)


@pytest.mark.server
def test_a_note_on_a_refusal_is_taken_whatever_its_length(server: Server) -> None:
    note = {
        "index": "calls",
        "at": "2026-01-02T03:04:05+00:00",
        "source": "s" * 40_000,
        "line": 7,
        "reason": "r" * 40_000,
        "document_id": "i" * 40_000,
    }
    body = mappings.notes_body("rejected", server.engine, STANDARD)
    assert set(note) == set(body["mappings"]["properties"])
    with live_servers.scratch_index(
        server, mappings.notes_body("rejected", server.engine, STANDARD)
    ) as index:
        assert server.request("PUT", f"/{index}/_doc/1", body=note)["result"] == "created"
