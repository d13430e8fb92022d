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
    """Return a new body of the request that creates an index of passages.

    Raises UsageError if this version of the engine cannot store vectors as `options` say.
    """
    dimension = options.count_graph_numbers(spec.dimension)
    row = _choose_row(engine, options, version)
    _check_dimension(engine, row, dimension)
    values = {
        **asdict(spec),
        **asdict(options),
        "quantization": row["quantization"],
        "analysis": _read(engine, "analysis").get(options.analyzer),
        **find_dialect(engine).fill_settings(version),
    }
    values["vector"] = _fill(row["vector"], {**values, "dimension": dimension})
    filled: dict[str, Any] = _fill(_read(engine, "passages"), values)
    return filled


def notes_body(name: str, engine: str, options: IndexOptions | None = None) -> dict[str, Any]:
    """Return the body of the request that creates an index of ``rejected`` notes or ``matches``."""
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


def _choose_row(engine: str, options: IndexOptions, version: Version) -> Row:
    """Return the row of ``vectors.json`` that says how this server stores a vector.

    Raises:
        UsageError: If it cannot.
    """
    rows: list[Row] = _read(engine, "vectors")
    fitting_rows = [
        row
        for row in rows
        if row["knn_engine"] == options.knn_engine and _has_quantization(row, options)
    ]
    for row in fitting_rows:
        if _supports(row, version):
            return row
    title, requested = find_dialect(engine).title, f"knn_engine {options.knn_engine!r}"
    if options.quantization:
        requested += f" with quantization {options.quantization!r}"
    needed = "no version has it"
    if fitting_rows:
        needed = f"it needs {title} {fitting_rows[0]['since']} or newer"
    raise UsageError(
        f"{title} {format_version(version)} has no {requested} ({needed}). "
        f"Use {_list_remedies(options, [row for row in rows if _supports(row, version)])}"
    )


def _list_remedies(options: IndexOptions, supported_rows: Sequence[Row]) -> str:
    own_rows = [row for row in supported_rows if row["knn_engine"] == options.knn_engine]
    quantizations = ", ".join(row["quantization"] for row in own_rows)
    remedies = [f"quantization {quantizations}"] if quantizations else []
    remedies += [
        f"knn_engine {row['knn_engine']}"
        for row in supported_rows
        if row not in own_rows and _has_quantization(row, options)
    ]
    return " or ".join(remedies) or "a newer server"


def _has_quantization(row: Row, options: IndexOptions) -> bool:
    if options.quantization is None:
        return bool(row.get("default"))
    return bool(row["quantization"] == options.quantization)


def _supports(row: Row, version: Version) -> bool:
    """Return whether `row` holds for `version`: from its `since` on, and before its `until`."""
    return _parse_version(row["since"]) <= version < _parse_version(row.get("until", "1000"))


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


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
    """Return `node` with each ``"$name"`` replaced by the value of that name, unless it is None."""
    if isinstance(node, dict):
        filled = {key: _fill(inner, values) for key, inner in node.items()}
        return {key: value for key, value in filled.items() if value is not None}
    if isinstance(node, list):
        return [_fill(inner, values) for inner in node]
    return values[node[1:]] if isinstance(node, str) and node.startswith("$") else node


TYPES = {"keyword": "string", "double": "number", "long": "number", "boolean": "boolean"}
"""The types of metadata fields: the server's names and ours."""


def read_fields(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the metadata fields in the properties of a mapping (dotted name -> type), sorted."""
    fields = _flatten(properties, "metadata")
    # texts that are dates or numbers have further fields with their values
    for kind, form in FORMS.items():  # a field with dates among its texts counts as a date field
        for name, type_ in _flatten(properties, form).items():
            if type_ == "number" and fields.get(name) in FORMS:
                fields[name] = kind
    return dict(sorted(fields.items()))


def _flatten(properties: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return name and type of all fields in an object of a mapping."""
    fields: dict[str, str] = {}
    for inner_name, field in properties.get(name, {}).get("properties", {}).items():
        fields[inner_name] = TYPES.get(field.get("type", "object"), "object")
        inner_fields = _flatten({inner_name: field}, inner_name)
        fields |= {f"{inner_name}.{path}": type_ for path, type_ in inner_fields.items()}
    return fields
