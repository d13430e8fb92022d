"""Reads how many documents have each value of a field from the aggregations of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hybrid_search.text.filters import Scalar


def read_counts(
    aggregations: Mapping[str, Any], fields: Sequence[str]
) -> dict[str, dict[Scalar, int]]:
    """Return for each field how many documents have each value."""
    return {
        name: _count_documents(aggregations[str(number)]["buckets"])
        for number, name in enumerate(fields)
    }


def _count_documents(buckets: Iterable[Mapping[str, Any]]) -> dict[Scalar, int]:
    return {_bucket_value(bucket): bucket["documents"]["value"] for bucket in buckets}


def _bucket_value(bucket: Mapping[str, Any]) -> Scalar:
    """Return the value that a bucket counts.

    To a server booleans are numbers, and a string beside them says which they are.
    """
    if bucket.get("key_as_string") in ("true", "false"):
        return bool(bucket["key"])
    key: Scalar = bucket["key"]
    return int(key) if isinstance(key, float) and key.is_integer() else key
