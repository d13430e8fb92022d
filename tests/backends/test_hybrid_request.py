"""The request for the server's own hybrid query, written out for each version that differs.

Also which clusters have that query at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Unpack

import pytest

from hybrid_search.backends.server.hybrid_features import ServerVersion
from hybrid_search.backends.server.transport.base import Body, Engine, Outcome, RequestOptions
from hybrid_search.backends.server.transport.plugins import (
    explain_missing_plugin,
    has_neural_search,
)
from hybrid_search.errors import UsageError
from hybrid_search.search.opensearch import hybrid_body

VECTOR = [0.6, -0.8]
GOLD = {"term": {"metadata.tier": "gold"}}

MATCH = {"match": {"text": {"query": "refund request"}}}
PLAIN = {"vector": [0.6, -0.8], "k": 100}
"""The kNN query for servers before 2.19."""

BEST = {"nested": {"path": "spans", "score_mode": "max", "query": {"knn": {"spans.vector": PLAIN}}}}

GOLDEN: dict[ServerVersion, dict[str, Any]] = {
    (2, 12, 0): {
        "size": 100,
        "_source": {"excludes": ["spans", "tokens", "short_codes"]},
        "query": {"hybrid": {"queries": [MATCH, BEST]}},
        "search_pipeline": {
            "phase_results_processors": [
                {
                    "normalization-processor": {
                        "normalization": {"technique": "min_max"},
                        "combination": {
                            "technique": "arithmetic_mean",
                            "parameters": {"weights": [0.3, 0.7]},
                        },
                    }
                }
            ]
        },
    },
    (2, 19, 1): {
        "from": 20,
        "size": 10,
        "explain": True,
        "_source": {"excludes": ["spans", "tokens", "short_codes"]},
        "query": {
            "hybrid": {
                "pagination_depth": 100,
                "queries": [
                    MATCH,
                    {
                        "nested": {
                            "path": "spans",
                            "score_mode": "max",
                            "query": {
                                "knn": {
                                    "spans.vector": {
                                        "vector": [0.6, -0.8],
                                        "k": 100,
                                        "expand_nested_docs": True,
                                    }
                                }
                            },
                        }
                    },
                ],
            }
        },
        "search_pipeline": {
            "phase_results_processors": [
                {"score-ranker-processor": {"combination": {"technique": "rrf"}}}
            ],
            "response_processors": [{"hybrid_score_explanation": {}}],
        },
    },
    (3, 0, 0): {
        "from": 0,
        "size": 10,
        "_source": {"excludes": ["spans", "tokens", "short_codes"]},
        "query": {
            "hybrid": {
                "pagination_depth": 100,
                "queries": [
                    MATCH,
                    {
                        "nested": {
                            "path": "spans",
                            "score_mode": "max",
                            "query": {
                                "knn": {
                                    "spans.vector": {
                                        "vector": [0.6, -0.8],
                                        "k": 100,
                                        "expand_nested_docs": True,
                                    }
                                }
                            },
                            "inner_hits": {
                                "name": "spans",
                                "size": 3,
                                "_source": False,
                                "fields": ["spans.start", "spans.end"],
                            },
                        }
                    },
                ],
            }
        },
        "search_pipeline": {
            "phase_results_processors": [
                {
                    "normalization-processor": {
                        "normalization": {"technique": "z_score"},
                        "combination": {
                            "technique": "arithmetic_mean",
                            "parameters": {"weights": [0.5, 0.5]},
                        },
                    }
                }
            ]
        },
    },
    (3, 5, 0): {
        "from": 0,
        "size": 10,
        "_source": {"excludes": ["spans", "tokens", "short_codes"]},
        "query": {
            "hybrid": {
                "pagination_depth": 200,
                "queries": [
                    {"bool": {"must": [MATCH], "filter": [{"term": {"metadata.tier": "gold"}}]}},
                    {
                        "nested": {
                            "path": "spans",
                            "score_mode": "max",
                            "query": {
                                "knn": {
                                    "spans.vector": {
                                        "vector": [0.6, -0.8],
                                        "k": 200,
                                        "filter": {
                                            "bool": {
                                                "filter": [{"term": {"metadata.tier": "gold"}}]
                                            }
                                        },
                                        "expand_nested_docs": True,
                                    }
                                }
                            },
                            "inner_hits": {
                                "name": "spans",
                                "size": 5,
                                "_source": False,
                                "fields": ["spans.start", "spans.end"],
                            },
                        }
                    },
                ],
            }
        },
        "search_pipeline": {
            "phase_results_processors": [
                {
                    "score-ranker-processor": {
                        "combination": {"technique": "rrf", "parameters": {"weights": [0.3, 0.7]}}
                    }
                }
            ]
        },
    },
}
GOLDEN[2, 13, 0] = GOLDEN[2, 12, 0]  # aggregations came with it, which this query has none of

QUERY_OPTIONS: dict[ServerVersion, dict[str, Any]] = {
    (2, 12, 0): {"alpha": 0.7},
    (2, 13, 0): {"alpha": 0.7},
    (2, 19, 1): {"technique": "rrf", "offset": 20, "explain": True},
    (3, 0, 0): {"technique": "z_score"},
    (3, 5, 0): {"technique": "rrf", "alpha": 0.7, "filter": [GOLD], "window": 200, "spans": 5},
}


@pytest.mark.parametrize("version", GOLDEN)
def test_a_version_is_sent_what_it_takes(version: ServerVersion) -> None:
    assert (
        hybrid_body("refund request", VECTOR, version=version, **QUERY_OPTIONS[version])
        == GOLDEN[version]
    )


@pytest.mark.parametrize(
    ("version", "options", "lacks", "since"),
    [
        ((2, 11, 1), {}, "nested fields", "2.12"),
        ((2, 18, 0), {"technique": "rrf"}, "rrf", "2.19"),
        ((2, 18, 0), {"offset": 10}, "pages", "2.19"),
        ((2, 18, 0), {"explain": True}, "explanation", "2.19"),
        ((2, 19, 4), {"technique": "z_score"}, "z_score", "3.0"),
        ((3, 0, 0), {"technique": "rrf", "alpha": 0.4}, "weights for rrf", "3.1"),
    ],
)
def test_what_a_version_lacks_is_named_with_both_versions_and_a_remedy(
    version: ServerVersion, options: dict[str, Any], lacks: str, since: str
) -> None:
    with pytest.raises(UsageError) as error:
        hybrid_body("refund", VECTOR, version=version, **options)
    message = str(error.value)
    assert (
        ".".join(map(str, version)) in message
        and lacks in message
        and f"came with {since}" in message
        and "leave compat out" in message
    )


@pytest.mark.parametrize(
    "options",
    [
        {"technique": "z_score", "combination": "harmonic_mean"},
        {"technique": "rrf", "combination": "arithmetic_mean"},
    ],
)
def test_a_combination_that_the_server_refuses_is_refused_here(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="does not combine"):
        hybrid_body("refund", VECTOR, version=(3, 5, 0), **options)


def test_our_default_fusion_is_sent_as_the_default_of_the_server_and_no_other_name_is() -> None:
    assert hybrid_body("a", VECTOR, version=(3, 5, 0), technique="calibrated") == hybrid_body(
        "a", VECTOR, version=(3, 5, 0), technique="min_max"
    )
    with pytest.raises(UsageError, match="'max'"):
        hybrid_body("a", VECTOR, version=(3, 5, 0), technique="max")


@pytest.mark.parametrize("combination", ["arithmetic_mean", "geometric_mean", "harmonic_mean"])
def test_a_mean_may_be_chosen(combination: str) -> None:
    [processor] = hybrid_body("a", VECTOR, version=(2, 12, 0), combination=combination)[
        "search_pipeline"
    ]["phase_results_processors"]
    assert processor["normalization-processor"]["combination"]["technique"] == combination


def test_the_legs_are_as_deep_as_the_last_hit_of_the_page() -> None:
    hybrid = hybrid_body("a", VECTOR, version=(3, 5, 0), size=50, offset=300)["query"]["hybrid"]
    assert hybrid["pagination_depth"] == 350
    assert hybrid["queries"][1]["nested"]["query"]["knn"]["spans.vector"]["k"] == 350


def test_without_spans_to_show_no_inner_hits_are_asked_for() -> None:
    assert (
        "inner_hits"
        not in hybrid_body("a", VECTOR, version=(3, 5, 0), spans=0)["query"]["hybrid"]["queries"][
            1
        ]["nested"]
    )


@pytest.mark.parametrize(
    "phrase", ['"quoted" AND *', "{{mustache}}", '"}}}]', "../_all", "a\nb", "text:refund~2"]
)
def test_a_phrase_is_data_wherever_it_stands(phrase: str) -> None:
    body = hybrid_body(phrase, VECTOR, version=(3, 5, 0))
    assert body["query"]["hybrid"]["queries"][0] == {"match": {"text": {"query": phrase}}}


class FakeCluster:
    """A cluster that lists `plugins`."""

    def __init__(self, *plugins: str, engine: Engine = "opensearch") -> None:
        self.engine, self.version, self.plugins = engine, (3, 5, 0), plugins

    def request(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Any:
        assert (method, path) == ("GET", "/_cat/plugins")
        assert options["params"] == {"format": "json", "h": "component"}
        return options["read"]([{"component": plugin} for plugin in self.plugins])

    def bulk(self, actions: Iterable[Body]) -> Iterator[Outcome]:
        raise NotImplementedError

    def close(self) -> None: ...


def test_a_cluster_has_the_hybrid_query_if_one_of_its_plugins_is_neural_search() -> None:
    assert has_neural_search(FakeCluster("opensearch-knn", "opensearch-neural-search"))
    assert not has_neural_search(FakeCluster("opensearch-knn"))
    assert not has_neural_search(FakeCluster())
    assert not has_neural_search(FakeCluster("opensearch-neural-search", engine="elasticsearch"))


@pytest.mark.parametrize(
    "reason", ["unknown query [hybrid]", "Invalid processor type score-ranker-processor"]
)
def test_a_refusal_for_want_of_the_plugin_is_said_in_plain_words(reason: str) -> None:
    message = explain_missing_plugin(reason)
    assert (
        message
        and "opensearch-neural-search" in message
        and reason in message
        and "leave compat out" in message
    )


def test_another_refusal_is_left_as_it_is() -> None:
    assert explain_missing_plugin("Invalid processor type filter_query") is None
