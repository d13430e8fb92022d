"""Fills in the bodies that create indexes, from ``mappings/ENGINE/*.json``, and reads mappings.

This is the only module that knows where those files are. ``passages.json`` creates an index of
passages and ``rejected.json`` the index of notes on rejected documents; ``vectors.json`` says, by
version, how a vector is stored, and ``analysis.json`` how the default analyzer works. A value
``"$name"`` is a placeholder; if it is None, its key is left out. Everything else is sent as it
stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server.dialects import find_dialect
from hybrid_search.backends.server.dialects.base import Version, format_version
from hybrid_search.backends.types import IndexSpec
from hybrid_search.errors import UsageError
from hybrid_search.text.values import FORMS

Row = Mapping[str, Any]

_PACKAGED_FOLDER = Path(__file__).parents[2] / "_mappings"
FOLDER = _PACKAGED_FOLDER if _PACKAGED_FOLDER.is_dir() else Path(__file__).parents[3] / "mappings"
"""In a wheel the folder is inside the package; in a checkout it is beside it."""


def index_body(
    engine: str, spec: IndexSpec, options: IndexOptions, version: Version
) -> dict[str, Any]:
    """Return the body of the request that creates an index of passages, a new one each time.

    Raises UsageError if the engine is unknown, or this version cannot store vectors as `options`
    say.
    """
    row = _row(engine, spec, options, version)
    analysis = _read(engine, "analysis").get(options.analyzer)
    values = {
        **asdict(spec),
        **asdict(options),
        "quantization": row["quantization"],
        "analysis": analysis,
        **find_dialect(engine).fill_settings(version),
    }
    vector_values = {**values, "dimension": options.count_graph_numbers(spec.dimension)}
    filled: dict[str, Any] = _fill(
        _read(engine, "passages"), {**values, "vector": _fill(row["vector"], vector_values)}
    )
    return filled


def notes_body(name: str, engine: str, options: IndexOptions | None = None) -> dict[str, Any]:
    """Return the body of the request that creates an index of ``rejected`` notes or ``matches``.

    Raises UsageError if the engine is unknown.
    """
    replicas = (options or IndexOptions()).replicas
    filled: dict[str, Any] = _fill(_read(engine, name), {"replicas": replicas})
    return filled


def _read(engine: str, name: str) -> Any:
    folder = FOLDER / find_dialect(engine).name
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


@cache
def list_columns(engine: str) -> frozenset[str]:
    """Return the fields of a passage in an index of ours; those of its spans have dotted names."""
    return name_columns(_read(engine, "passages")["mappings"]["properties"])


def name_columns(properties: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the fields in a mapping, as `list_columns` does."""
    spans = properties.get("spans", {}).get("properties", {})
    return frozenset({*properties, *(f"spans.{name}" for name in spans)})


def _row(engine: str, spec: IndexSpec, options: IndexOptions, version: Version) -> Row:
    """Return the row of ``vectors.json`` that says how this server stores a vector.

    Raises:
        UsageError: If it cannot.
    """
    rows: list[Row] = _read(engine, "vectors")
    matching_rows = [
        row
        for row in rows
        if row["knn_engine"] == options.knn_engine
        and _matches_quantization(row, options.quantization)
    ]
    row = next((row for row in matching_rows if _supports(row, version)), None)
    if row is None:
        raise UsageError(_explain_missing(engine, options, version, rows, matching_rows))
    _check_dimension(engine, row, options.count_graph_numbers(spec.dimension))
    return row


def _matches_quantization(row: Row, quantization: str | None) -> bool:
    return bool(row.get("default")) if quantization is None else row["quantization"] == quantization


def _supports(row: Row, version: Version) -> bool:
    """Return whether `row` holds for `version`: from its `since` on, and before its `until`."""
    if version < _parse_version(row["since"]):
        return False
    return "until" not in row or version < _parse_version(row["until"])


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _explain_missing(
    engine: str,
    options: IndexOptions,
    version: Version,
    rows: Sequence[Row],
    matching_rows: Sequence[Row],
) -> str:
    """Return the message for a missing row.

    It says what was requested of which server, which version has it, and what to use instead.
    """
    requested = f"knn_engine {options.knn_engine!r}" + (
        f" with quantization {options.quantization!r}" if options.quantization else ""
    )
    needed = (
        f"it needs {find_dialect(engine).title} {matching_rows[0]['since']} or newer"
        if matching_rows
        else "no version has it"
    )
    supported_rows = [row for row in rows if _supports(row, version)]
    quantizations = [
        row["quantization"] for row in supported_rows if row["knn_engine"] == options.knn_engine
    ]
    remedies = [f"quantization {', '.join(quantizations)}"] if quantizations else []
    remedies += [
        f"knn_engine {row['knn_engine']}"
        for row in supported_rows
        if row["knn_engine"] != options.knn_engine
        and _matches_quantization(row, options.quantization)
    ]
    remedies = remedies or ["a newer server"]
    server = f"{find_dialect(engine).title} {format_version(version)}"
    return f"{server} has no {requested} ({needed}). Use {' or '.join(remedies)}"


def _check_dimension(engine: str, row: Row, dimension: int) -> None:
    minimum, step = row.get("minimum_dimension", 1), row.get("dimension_multiple_of", 1)
    if dimension < minimum or dimension % step:
        needed = f"at least {minimum}" if dimension < minimum else f"a multiple of {step}"
        requested = f"quantization {row['quantization']!r} on {find_dialect(engine).title}"
        raise UsageError(
            f"{requested} needs vectors of {needed} dimensions, but those of the graph have "
            f"{dimension}. Use another, such as int8, or another graph_dimension"
        )


def _fill(node: Any, values: Mapping[str, Any]) -> Any:
    """Return `node` with each ``"$name"`` replaced by the value of that name."""
    if isinstance(node, dict):
        return {
            key: _fill(value, values) for key, value in node.items() if not _is_empty(value, values)
        }
    if isinstance(node, list):
        return [_fill(value, values) for value in node]
    return values[node[1:]] if _is_placeholder(node) else node


def _is_placeholder(node: Any) -> bool:
    return isinstance(node, str) and node.startswith("$")


def _is_empty(node: Any, values: Mapping[str, Any]) -> bool:
    return _is_placeholder(node) and values[node[1:]] is None


TYPES = {"keyword": "string", "double": "number", "long": "number", "boolean": "boolean"}
"""The types of metadata fields: the server's names and ours."""


def read_fields(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the metadata fields of an index (dotted name -> type), sorted.

    `properties` are the properties of its mapping. Texts that are dates or numbers have further
    fields with their values.
    """
    fields = _flatten(properties, "metadata")
    for kind, form in FORMS.items():  # a field with dates among its texts counts as a date field
        typed_names = (
            name for name, type_ in _flatten(properties, form).items() if type_ == "number"
        )
        fields |= {name: kind for name in typed_names if fields.get(name) in FORMS}
    return dict(sorted(fields.items()))


def _flatten(properties: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return name and type of all fields in an object of a mapping."""
    fields: dict[str, str] = {}
    for inner_name, field in properties.get(name, {}).get("properties", {}).items():
        fields[inner_name] = TYPES.get(field.get("type", "object"), "object")
        inner_fields = _flatten({inner_name: field}, inner_name)
        fields |= {f"{inner_name}.{path}": type_ for path, type_ in inner_fields.items()}
    return fields
