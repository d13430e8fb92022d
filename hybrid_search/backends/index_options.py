"""Options of an index on a server, in the query part of its URL, as in ``?m=32&shards=3``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from hybrid_search.config import DEFAULT_GRAPH_DIMENSION
from hybrid_search.errors import UsageError

DEFAULT_ANALYZER = "english"
"""The analyzer that cuts texts as `hybrid_search.text.stems` does."""

KNN_ENGINES = ("lucene", "faiss")
QUANTIZATIONS = ("byte", "none", "fp16", "int8", "int4", "binary")
BOUNDS = {
    "graph_dimension": (1, 4096),
    "m": (2, 100),
    "ef_construction": (2, 3200),
    "shards": (1, 1024),
    "replicas": (0, 100),
}
"""Smallest and largest value that every server accepts.

The bounds of `m` are OpenSearch's, those of `ef_construction` are Lucene's, and the most numbers of
a vector are Elasticsearch's.
"""


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Options of an index on a server, used when it is created; later it tells them itself.

    UsageError is raised if a value is not allowed.

    Attributes:
        analyzer: Cuts the text into terms; must be one that the server has.
        knn_engine: Library of the vector index; only OpenSearch has faiss.
        quantization: How the graph stores vectors; None is byte, with faiss none.
        graph_dimension: How many numbers of a vector the graph has at most; word codes have all.
        m: How many neighbours a vector is linked to in the graph.
        ef_construction: How many vectors are examined to find these neighbours.
        shards: Number of primary shards.
        replicas: Number of copies of each shard; None is the server's default.
    """

    analyzer: str = DEFAULT_ANALYZER
    knn_engine: str = "lucene"
    quantization: str | None = None
    graph_dimension: int = DEFAULT_GRAPH_DIMENSION
    m: int = 16
    ef_construction: int = 100
    shards: int = 1
    replicas: int | None = None

    def __post_init__(self) -> None:
        if not self.analyzer:
            raise UsageError(
                "analyzer is empty: name one that the server has, such as english or standard"
            )
        for name, allowed in (("knn_engine", KNN_ENGINES), ("quantization", QUANTIZATIONS)):
            value = getattr(self, name)
            if value is not None and value not in allowed:
                choices = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
                raise UsageError(f"{name} is {value!r}: use {choices}")
        for name, (low, high) in BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise UsageError(f"{name} is {value}: use {low} to {high}")

    @classmethod
    def parse(cls, parameters: Mapping[str, str]) -> Self:
        """Return the options in the query part of a URL; raise UsageError if one is not allowed."""
        option_names = [field.name for field in fields(cls)]
        unknown = sorted(set(parameters) - set(option_names))
        if unknown:
            raise UsageError(
                f"unknown index option {', '.join(map(repr, unknown))}: "
                f"use {', '.join(option_names)}"
            )
        values: dict[str, Any] = {
            name: _parse_integer(name, value) if name in BOUNDS else value
            for name, value in parameters.items()
        }
        return cls(**values)

    def count_graph_numbers(self, dimension: int) -> int:
        """Return how many numbers of vectors of a `dimension` the graph has."""
        return min(dimension, self.graph_dimension)

    def override(self, overrides: Mapping[str, str]) -> IndexOptions:
        """Return a copy of these options with `overrides`; raise UsageError if one is wrong."""
        return replace(self, **{name: getattr(self.parse(overrides), name) for name in overrides})


def _parse_integer(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        low, high = BOUNDS[name]
        raise UsageError(f"{name} is {value!r}: use an integer, {low} to {high}") from None
