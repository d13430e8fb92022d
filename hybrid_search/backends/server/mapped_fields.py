"""The types of metadata fields, read from the mapping of an index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybrid_search.text.values import FORMS

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
