"""What a server is told about its indexes: ``mappings/ENGINE/*.json``, filled in. The only module that knows where the files lie.

``passages.json`` is the body of the request that makes an index of passages, ``rejected.json`` that of the notes on refused documents;
``vectors.json`` says how a vector is kept, by version. A value ``"$name"`` in them is a placeholder; where it is None, it and its name are left out.
All else is sent as it stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hybrid_search.backends.base import IndexSpec
from hybrid_search.backends.options import IndexOptions
from hybrid_search.errors import UsageError

ENGINES = {"opensearch": "OpenSearch", "elasticsearch": "Elasticsearch"}
"""The kinds of server, and what people call them."""

Version = tuple[int, int, int]
Row = Mapping[str, Any]

_PACKAGED = Path(__file__).parent / "_mappings"
FOLDER = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parent.parent / "mappings"
"""A wheel carries the folder inside the package; in a checkout it is beside it."""


def body(engine: str, spec: IndexSpec, options: IndexOptions, version: Version) -> dict[str, Any]:
    """The body of the request that makes an index of passages for `spec` on a server of this kind and version, a new one at each call.

    Raises UsageError for a kind of server that there is none for, and where that server cannot keep vectors as `options` asks.
    """
    row = _row(engine, spec, options, version)
    values = {**asdict(spec), **asdict(options), "quantization": row["quantization"]}
    filled: dict[str, Any] = _filled(_read(engine, "passages"), {**values, "vector": _filled(row["vector"], values)})
    return filled


def rejected(engine: str, options: IndexOptions | None = None) -> dict[str, Any]:
    """The body of the request that makes an index of notes on refused documents. Raises UsageError for a kind of server that there is none for."""
    filled: dict[str, Any] = _filled(_read(engine, "rejected"), {"replicas": (options or IndexOptions()).replicas})
    return filled


def _read(engine: str, name: str) -> Any:
    if engine not in ENGINES:
        raise UsageError(f"there are no mappings for {engine!r}: use {' or '.join(ENGINES)}")
    return json.loads((FOLDER / engine / f"{name}.json").read_text(encoding="utf-8"))


FIELDS: tuple[str, ...] = tuple(_read("opensearch", "passages")["mappings"]["properties"])
"""The fields of a passage on a server: all that its writer may name, and no other."""

REJECTED_FIELDS: tuple[str, ...] = tuple(_read("opensearch", "rejected")["mappings"]["properties"])
"""The fields of a note on a refused document."""


def _row(engine: str, spec: IndexSpec, options: IndexOptions, version: Version) -> Row:
    """The row of ``vectors.json`` that says how such a server keeps a vector. Raises UsageError where it cannot."""
    rows: list[Row] = _read(engine, "vectors")
    wanted = [row for row in rows if row["knn_engine"] == options.knn_engine and _fits(row, options.quantization)]
    row = next((row for row in wanted if _holds(row, version)), None)
    if row is None:
        raise UsageError(_absent(engine, options, version, rows, wanted))
    _check_dimension(engine, row, spec.dimension)
    return row


def _fits(row: Row, quantization: str | None) -> bool:
    return bool(row.get("default")) if quantization is None else row["quantization"] == quantization


def _holds(row: Row, version: Version) -> bool:
    """Whether a server of `version` takes the vectors of `row`: from `since` on, and before `until` where there is one."""
    return _number(row["since"]) <= version and ("until" not in row or version < _number(row["until"]))


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _absent(engine: str, options: IndexOptions, version: Version, rows: Sequence[Row], wanted: Sequence[Row]) -> str:
    """Why there is no row: what was asked of which server, which version has it, and what there is instead."""
    asked = f"knn_engine {options.knn_engine!r}" + (f" with quantization {options.quantization!r}" if options.quantization else "")
    needed = f"it needs {ENGINES[engine]} {wanted[0]['since']} or newer" if wanted else "no version has it"
    there = [row for row in rows if _holds(row, version)]
    same = [row["quantization"] for row in there if row["knn_engine"] == options.knn_engine]
    other = [f"knn_engine {row['knn_engine']}" for row in there if row["knn_engine"] != options.knn_engine and _fits(row, options.quantization)]
    remedies = [*([f"quantization {', '.join(same)}"] if same else []), *other] or ["a newer server"]
    return f"{ENGINES[engine]} {'.'.join(map(str, version))} has no {asked} ({needed}). Use {' or '.join(remedies)}"


def _check_dimension(engine: str, row: Row, dimension: int) -> None:
    least, step = row.get("minimum_dimension", 1), row.get("dimension_multiple_of", 1)
    if dimension < least or dimension % step:
        needed = f"at least {least}" if dimension < least else f"a multiple of {step}"
        asked = f"quantization {row['quantization']!r} on {ENGINES[engine]}"
        raise UsageError(f"{asked} needs vectors of {needed} dimensions, and those of the model have {dimension}. Use another, such as int8")


def _filled(node: Any, values: Mapping[str, Any]) -> Any:
    """`node` with each ``"$name"`` in it replaced by the value of that name."""
    if isinstance(node, dict):
        return {key: _filled(value, values) for key, value in node.items() if not _empty(value, values)}
    if isinstance(node, list):
        return [_filled(value, values) for value in node]
    return values[node[1:]] if _placeholder(node) else node


def _placeholder(node: Any) -> bool:
    return isinstance(node, str) and node.startswith("$")


def _empty(node: Any, values: Mapping[str, Any]) -> bool:
    return _placeholder(node) and values[node[1:]] is None
