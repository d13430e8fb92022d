"""Asks which version of each document an index has, and whether it is complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def build_versions_body(ids: Sequence[str]) -> dict[str, Any]:
    """Return the search that counts the passages of each document by version."""
    hashes = {
        "terms": {"field": "source_hash", "size": 2},
        "aggs": {"passages": {"max": {"field": "passages"}}},
    }
    document_terms = {
        "terms": {"field": "document_id", "size": len(ids)},
        "aggs": {"hashes": hashes},
    }
    return {
        "size": 0,
        "query": {"terms": {"document_id": list(ids)}},
        "aggs": {"documents": document_terms},
    }


def is_complete(bucket: dict[str, Any]) -> bool:
    """Return whether a document has all passages of one version, and none of another."""
    versions = bucket["hashes"]["buckets"]
    if len(versions) != 1:
        return False
    return bool(versions[0]["doc_count"] == versions[0]["passages"]["value"])
