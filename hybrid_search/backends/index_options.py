"""What can be chosen when an index is made on a server: given in the query part of its URL, as in
``?quantization=int8&shards=3``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from hybrid_search.errors import UsageError

KNN_ENGINES = ("lucene", "faiss")
QUANTIZATIONS = ("none", "fp16", "int8", "int4", "binary")
BOUNDS = {"m": (2, 100), "ef_construction": (2, 3200), "shards": (1, 1024), "replicas": (0, 100)}
"""What every server takes: OpenSearch's `m`, Lucene's `ef_construction`."""


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Options of an index on a server.

    Only its making asks for them: whoever comes later finds them in the index. Raises UsageError.

    `analyzer` cuts the text into terms, and must be one that the server has. `knn_engine` faiss is
    OpenSearch's alone. `quantization` says how the graph keeps vectors; None is what suits the
    server best. A vector is linked to `m` others, the nearest of `ef_construction` that are looked
    at. `replicas` None is the server's default.
    """

    analyzer: str = "english"
    knn_engine: str = "lucene"
    quantization: str | None = None
    m: int = 16
    ef_construction: int = 100
    shards: int = 1
    replicas: int | None = None

    def __post_init__(self) -> None:
        if not self.analyzer:
            raise UsageError(
                "analyzer is empty: name one that the server has, such as english or standard"
            )
        _check_choice("knn_engine", self.knn_engine, KNN_ENGINES)
        _check_choice(
            "quantization",
            "none" if self.quantization is None else self.quantization,
            QUANTIZATIONS,
        )
        for name in BOUNDS:
            value = getattr(self, name)
            if value is not None:
                _check_range(name, value)

    @classmethod
    def parse(cls, parameters: Mapping[str, str]) -> Self:
        """The options that the query part of a URL gives.

        Raises UsageError for an unknown name, and for a value that is not allowed.
        """
        option_names = [field.name for field in fields(cls)]
        unknown = sorted(set(parameters) - set(option_names))
        if unknown:
            raise UsageError(
                f"unknown in the URL: {', '.join(map(repr, unknown))}. An index can be given {', '.join(option_names)}"
            )
        values: dict[str, Any] = {
            name: _parse_integer(name, value) if name in BOUNDS else value
            for name, value in parameters.items()
        }
        return cls(**values)

    def override(self, overrides: Mapping[str, str]) -> IndexOptions:
        """These options, but for those `given`. Raises UsageError."""
        return replace(self, **{name: getattr(self.parse(overrides), name) for name in overrides})


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{name} is {value!r}: use {', '.join(allowed[:-1])} or {allowed[-1]}")


def _check_range(name: str, value: int) -> None:
    low, high = BOUNDS[name]
    if not low <= value <= high:
        raise UsageError(f"{name} is {value}: use {low} to {high}")


def _parse_integer(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        low, high = BOUNDS[name]
        raise UsageError(f"{name} is {value!r}: use an integer, {low} to {high}") from None
