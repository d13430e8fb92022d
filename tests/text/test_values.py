"""Which texts are dates or numbers, what these are, and which date is the day of a call."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from hybrid_search.text.filters import find_call_date
from hybrid_search.text.values import parse_date, read_number, read_period, read_value

DAY = 86_400_000_000


def microseconds(year: int, month: int, day: int, hour: int = 0) -> int:
    return int(datetime(year, month, day, hour, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("2026-03-02", microseconds(2026, 3, 2)),
        ("2026-03-02T10:00:00+02:00", microseconds(2026, 3, 2, 8)),
        ("2026-03-02 10:00 +0200", microseconds(2026, 3, 2, 8)),
        ("2026-03-02T10:00-05", microseconds(2026, 3, 2, 15)),
        ("2026-03-02 10:00:00 UTC", microseconds(2026, 3, 2, 10)),
        ("2026-03-02T10:00:00", microseconds(2026, 3, 2, 10)),
        ("2026-03-02T10:00:00,5Z", microseconds(2026, 3, 2, 10) + 500_000),
        ("0001-01-01T00:00+14:00", microseconds(1, 1, 1) - 14 * 3_600_000_000),
    ],
)
def test_a_date_is_its_instant_in_utc(text: str, start: int) -> None:
    assert read_value(text) == ("date", start)


@pytest.mark.parametrize(
    "text",
    [
        "0000-00-00",
        "2026-02-30",
        "2026-3-2",
        "2026-03-02T25:00",
        "02.03.2026",
        "2026-03-02T",
        "2026",
        "2026-03-02\n",
        "２０２６-03-02",
    ],
)
def test_what_only_looks_like_a_date_is_none(text: str) -> None:
    assert read_value(text)[0] != "date"


def test_a_period_ends_where_the_next_begins() -> None:
    assert read_period("2026-03-02") == (microseconds(2026, 3, 2), microseconds(2026, 3, 3))
    assert read_period("2026-12") == (microseconds(2026, 12, 1), microseconds(2027, 1, 1))
    assert read_period("2024") == (microseconds(2024, 1, 1), microseconds(2025, 1, 1))
    assert read_period("9999") == (microseconds(9999, 1, 1), microseconds(9999, 12, 31) + DAY)
    assert [read_period(text) for text in ("0000", "2026-13", "soon")] == [None] * 3


def test_a_number_is_written_as_in_json_and_exact() -> None:
    assert [read_number(text) for text in ("0", "-1.50", "123456789012345")] == [
        0,
        -1.5,
        123456789012345,
    ]
    codes = ("007", "1e5", "1.", "+1", "4,5", "1234567890123456", "nan", "", "٣")
    assert [read_number(code) for code in codes] == [None] * len(codes)


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
