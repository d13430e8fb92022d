"""Which strings in metadata are dates, and which date is the day of a call."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from hybrid_search.text.filters import find_call_date
from hybrid_search.text.values import parse_date


@pytest.mark.parametrize(
    "text",
    [
        "2026-04-15",
        "2026-04-15T09:30",
        "2026-04-15T09:30:00Z",
        "2026-04-15 09:30:00.123+02:00",
        "2026-04-15T0930",
    ],
)
def test_dates_and_times_in_iso_8601_are_dates(text: str) -> None:
    assert parse_date(text) == date(2026, 4, 15)


@pytest.mark.parametrize(
    "value",
    [
        None,
        20260415,
        "",
        "2026",
        "2026-02-30",
        "15.04.2026",
        "2026-04-15 was a good day",
        "2026-04-15-invoice",
        "२०२६-०४-१५T09:30",
    ],
)
def test_anything_else_is_not_a_date(value: Any) -> None:
    assert parse_date(value) is None


@pytest.mark.parametrize(
    ("metadata", "day"),
    [
        ({"opened": "2026-01-01", "date": "2026-01-02", "call_date": "2026-01-03"}, 3),
        ({"opened": "2026-01-01", "date": "2026-01-02"}, 2),
        ({"sector": "shop", "opened": "2026-01-01", "closed": "2026-01-04"}, 1),
        ({"date": "soon", "order": {"placed": "2026-01-05T10:00:00Z"}}, 5),
        ({"date": ["later", "2026-01-06"]}, 6),
        ({"sector": "shop", "year": 2026}, None),
        ({}, None),
    ],
)
def test_the_day_of_a_call_is_its_usual_field_else_its_first_date(
    metadata: dict[str, Any], day: int | None
) -> None:
    assert find_call_date(metadata) == (date(2026, 1, day) if day else None)
