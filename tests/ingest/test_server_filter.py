"""The filter query for the index of a server: only what servers compare as we do."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_search.ingest.sources import server_index
from tests.ingest.test_server_source import MAPPINGS

PROPERTIES = MAPPINGS["properties"]


@pytest.mark.parametrize(
    ("where", "expected_filter"),
    [
        ({"sector": ["bank", "shop"]}, {"terms": {"sector": ["bank", "shop"]}}),
        ({"sector": "bank"}, {"terms": {"sector": ["bank"]}}),
        ({"sector": "7"}, None),
        ({"sector": "True"}, None),
        ({"sector": "x" * 11}, None),
        ({"topic": "a refund"}, {"terms": {"topic.keyword": ["a refund"]}}),
        ({"body": "a refund"}, None),
        ({"minutes": ["7", "-8"]}, {"terms": {"minutes": [7, -8]}}),
        ({"minutes": "7.5"}, None),
        ({"minutes": {"gte": 3}}, None),
        ({"solved": "TRUE"}, {"terms": {"solved": [True]}}),
        ({"customer.tier": "gold"}, {"terms": {"customer.tier": ["gold"]}}),
        ({"at": "2026-01-01"}, None),
        ({"unsearched": "u"}, None),
        ({"inner.x": "u"}, None),
        ({"unknown": "u"}, None),
        ({"id": ["a", "b"]}, {"ids": {"values": ["a", "b"]}}),
    ],
)
def test_only_what_a_server_compares_as_we_do_is_asked_of_it(
    where: dict[str, Any], expected_filter: dict[str, Any] | None
) -> None:
    expected_query = (
        {"bool": {"filter": [expected_filter]}} if expected_filter else {"match_all": {}}
    )
    assert server_index.build_query(where, [PROPERTIES], by_id=True) == expected_query


def test_indexes_that_map_a_field_differently_are_not_asked_for_it() -> None:
    other_properties = {**PROPERTIES, "sector": {"type": "text"}}
    assert (
        server_index.build_query({"sector": "bank"}, [PROPERTIES, other_properties], by_id=True)
        == server_index.EVERYTHING
    )
    assert (
        server_index.build_query({"id": "a"}, [PROPERTIES], by_id=False) == server_index.EVERYTHING
    )
