"""The legs of the hybrid query on a real OpenSearch, fused by the documented formulas.

If the server has the plugin, the whole hybrid query as well.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import mappings
from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.base import Server
from hybrid_search.backends.server.transport.connect import connect
from hybrid_search.backends.server.transport.plugins import (
    explain_missing_plugin,
    has_neural_search,
)
from hybrid_search.backends.types import IndexSpec
from hybrid_search.credentials import Access
from hybrid_search.errors import ServerError
from hybrid_search.search.opensearch import fuse_by_alpha, hybrid_body, score_from_cosine

pytestmark = pytest.mark.server

URLS = [
    url
    for url in os.environ.get("HYBRID_SEARCH_TEST_URLS", "").split()
    if not url.startswith("elasticsearch+")
]
WORDS = (
    "refund",
    "request",
    "money",
    "back",
    "kettle",
    "order",
    "parcel",
    "late",
    "broken",
    "call",
    "charge",
    "twice",
    "card",
    "please",
)
PASSAGES, SPANS, DIMENSION, WINDOW = 150, 3, 8, 40
OPTIONS = IndexOptions(analyzer="standard", quantization="none", replicas=0)
"""Floats: what the server makes of cosines is compared with what is computed from them here."""

Hits = list[dict[str, Any]]


def make_passage(random: np.random.Generator, number: int) -> dict[str, Any]:
    """A passage of random words and span vectors; every third is gold."""
    vectors = random.normal(size=(SPANS, DIMENSION))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return {
        "document_id": f"call-{number}",
        "ordinal": 0,
        "text": " ".join(random.choice(WORDS, size=random.integers(3, 12))),
        "metadata": {"tier": "gold" if number % 3 == 0 else "silver"},
        "spans": [
            {"start": 10 * position, "end": 10 * position + 5, "vector": vector}
            for position, vector in enumerate(vectors.tolist())
        ],
    }


@pytest.fixture(scope="module", params=URLS or ["none"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    if request.param == "none":
        pytest.skip("HYBRID_SEARCH_TEST_URLS names no OpenSearch")
    connection = connect(Address.parse(request.param), Access())
    if connection.engine != "opensearch":
        pytest.skip("this is about OpenSearch's own hybrid query")
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def index(server: Server) -> Iterator[str]:
    """The name of an index with random passages, on one shard."""
    name = f"compat-{uuid.uuid4().hex[:8]}"
    spec = IndexSpec("random", "none", DIMENSION, "float32", "turn", "6/1", 1)
    server.request(
        "PUT",
        f"/{name}",
        body=mappings.index_body("opensearch", spec, OPTIONS, server.version),
    )
    try:
        random = np.random.default_rng(7)
        lines = (
            [{"index": {"_id": f"call-{number}#0"}}, make_passage(random, number)]
            for number in range(PASSAGES)
        )
        answer = server.request(
            "POST",
            f"/{name}/_bulk",
            params={"refresh": True},
            lines=(line for pair in lines for line in pair),
        )
        assert not answer["errors"], answer
        yield name
    finally:
        server.request("DELETE", f"/{name}")


@pytest.fixture(scope="module")
def vector() -> list[float]:
    direction = np.random.default_rng(3).normal(size=DIMENSION)
    return list(direction / np.linalg.norm(direction))


def fetch_hits(server: Server, index: str, query: dict[str, Any], **options: Any) -> Hits:
    page_hits: Hits = server.request(
        "POST",
        f"/{index}/_search",
        body={"size": WINDOW, "_source": ["spans.vector"], "query": query, **options},
    )["hits"]["hits"]
    return page_hits


def leg_scores(leg_hits: Hits) -> list[tuple[str, float]]:
    return [(hit["_id"], hit["_score"]) for hit in leg_hits]


def leg_queries(server: Server, vector: list[float], **options: Any) -> list[dict[str, Any]]:
    """Return the two queries inside the hybrid query for this server."""
    body = hybrid_body("refund request", vector, version=server.version, window=WINDOW, **options)
    queries: list[dict[str, Any]] = body["query"]["hybrid"]["queries"]
    return queries


def test_the_lexical_leg_is_the_servers_own_match(
    server: Server, index: str, vector: list[float]
) -> None:
    lexical, _ = leg_queries(server, vector)
    assert leg_scores(fetch_hits(server, index, lexical)) == leg_scores(
        fetch_hits(server, index, {"match": {"text": "refund request"}})
    )


def test_the_span_leg_scores_a_passage_by_its_best_span_as_of_cosine_says(
    server: Server, index: str, vector: list[float]
) -> None:
    _, semantic = leg_queries(server, vector)
    span_hits = fetch_hits(server, index, semantic)
    assert len(span_hits) == WINDOW
    for hit in span_hits:
        best = max(float(np.dot(vector, span["vector"])) for span in hit["_source"]["spans"])
        assert hit["_score"] == pytest.approx(score_from_cosine(best), abs=2e-6)


def test_inner_hits_say_where_the_best_spans_lie(
    server: Server, index: str, vector: list[float]
) -> None:
    if server.version < (3, 0, 0):
        pytest.skip("hybrid queries have inner_hits from 3.0 on")
    _, semantic = leg_queries(server, vector, spans=2)
    for hit in fetch_hits(server, index, semantic):
        inner = hit["inner_hits"]["spans"]["hits"]["hits"]
        cosines = [float(np.dot(vector, span["vector"])) for span in hit["_source"]["spans"]]
        order = sorted(range(SPANS), key=lambda number: -cosines[number])[:2]
        assert [inner_hit["fields"] for inner_hit in inner] == [
            {"spans.start": [10 * n], "spans.end": [10 * n + 5]} for n in order
        ]
        assert inner[0]["_score"] == hit["_score"]


def test_a_filter_holds_during_the_search_for_spans_and_not_after_it(
    server: Server, index: str, vector: list[float]
) -> None:
    """50 of the 150 are gold: if the nearest 40 of all were filtered, about 13 would be left."""
    lexical, semantic = leg_queries(server, vector, filter=[{"terms": {"metadata.tier": ["gold"]}}])
    gold = {f"call-{number}#0" for number in range(0, PASSAGES, 3)}
    assert {key for key, _ in leg_scores(fetch_hits(server, index, lexical))} <= gold
    keys = [key for key, _ in leg_scores(fetch_hits(server, index, semantic))]
    assert len(keys) == WINDOW and set(keys) <= gold


def test_a_filter_leaves_the_scores_as_they_are(
    server: Server, index: str, vector: list[float]
) -> None:
    for plain, filtered in zip(
        leg_queries(server, vector),
        leg_queries(server, vector, filter=[{"terms": {"metadata.tier": ["gold"]}}]),
        strict=True,
    ):
        scores = dict(leg_scores(fetch_hits(server, index, plain)))
        assert all(
            scores.get(key, score) == score
            for key, score in leg_scores(fetch_hits(server, index, filtered))
        )


def normalize_as_documented(ranking: list[tuple[str, float]], fusion: str) -> dict[str, float]:
    """Normalize a leg by the documented formula, in double precision."""
    scores = [score for _, score in ranking]
    if fusion == "min_max":
        lowest, width = min(scores), max(scores) - min(scores)
        return {
            key: max((score - lowest) / width, 0.001 * (score == lowest)) for key, score in ranking
        }
    if fusion == "l2":
        return {
            key: score / sum(value * value for value in scores) ** 0.5 for key, score in ranking
        }
    return {key: 1 / (60 + rank) for rank, (key, _) in enumerate(ranking, 1)}


def _is_distant(key: str, scores: dict[str, float]) -> bool:
    """Return whether no other score is so close that rounding could swap them."""
    rival_scores = [score for rival, score in scores.items() if rival != key]
    return all(abs(scores[key] - score) > 1e-6 for score in rival_scores)


@pytest.mark.parametrize("fusion", ["min_max", "l2", "rrf"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 1.0])
def test_real_legs_are_fused_in_the_documented_order(
    server: Server, index: str, vector: list[float], fusion: str, alpha: float
) -> None:
    lexical, semantic = (
        leg_scores(fetch_hits(server, index, query)) for query in leg_queries(server, vector)
    )
    ranking = fuse_by_alpha(lexical, semantic, alpha, fusion)
    first, second = (
        normalize_as_documented(lexical, fusion),
        normalize_as_documented(semantic, fusion),
    )
    weighted_first = {key: (1 - alpha) * score for key, score in first.items()}
    weighted_second = {key: alpha * score for key, score in second.items()}
    expected = {
        key: weighted_first.get(key, 0.0) + weighted_second.get(key, 0.0)
        for key in {*first, *second}
    }
    assert dict(ranking) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    distant = [key for key, _ in ranking if _is_distant(key, expected)]
    assert distant == sorted(distant, key=lambda key: -expected[key])


def test_sorting_by_score_and_doc_tells_the_document_numbers_that_ties_are_ordered_by(
    server: Server, index: str
) -> None:
    query = {"match": {"text": "refund request"}}
    sorted_hits = fetch_hits(server, index, query, sort=["_score", "_doc"])
    assert leg_scores(sorted_hits) == leg_scores(fetch_hits(server, index, query))
    numbers = [hit["sort"][1] for hit in sorted_hits]
    assert len(set(numbers)) == len(numbers)
    assert all(isinstance(number, int) for number in numbers)
    for first, second in pairwise(sorted_hits):
        is_ordered_by_number = first["sort"][1] < second["sort"][1]
        assert first["_score"] > second["_score"] or is_ordered_by_number


def test_a_server_without_the_plugin_refuses_in_words_that_are_translated(
    server: Server, index: str, vector: list[float]
) -> None:
    if has_neural_search(server):
        pytest.skip("this server has the plugin neural-search")
    body = hybrid_body("refund request", vector, version=server.version)
    for refused in (body, {**body, "query": {"match_all": {}}}, {"query": body["query"]}):
        with pytest.raises(ServerError) as error:
            server.request("POST", f"/{index}/_search", body=refused)
        assert error.value.status == 400
        assert "no plugin opensearch-neural-search" in (
            explain_missing_plugin(str(error.value)) or ""
        )


@pytest.mark.parametrize("fusion", ["min_max", "l2", "z_score", "rrf"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 1.0])
def test_the_hybrid_query_of_the_server_is_what_fused_says(
    server: Server, index: str, vector: list[float], fusion: str, alpha: float
) -> None:
    if not has_neural_search(server):
        pytest.skip(
            "this server has no plugin neural-search, and so no hybrid query to compare with"
        )
    body = hybrid_body(
        "refund request",
        vector,
        version=server.version,
        alpha=alpha,
        technique=fusion,
        size=2 * WINDOW,
        window=2 * WINDOW,
    )
    server_ranking = leg_scores(
        server.request("POST", f"/{index}/_search", body=body)["hits"]["hits"]
    )
    queries = body["query"]["hybrid"]["queries"]
    options = {"size": 2 * WINDOW, "sort": ["_score", "_doc"]}
    lexical, semantic = (fetch_hits(server, index, query, **options) for query in queries)
    numbers = {hit["_id"]: hit["sort"][1] for hit in (*lexical, *semantic)}
    assert (
        server_ranking
        == fuse_by_alpha(leg_scores(lexical), leg_scores(semantic), alpha, fusion, numbers=numbers)[
            : 2 * WINDOW
        ]
    )
