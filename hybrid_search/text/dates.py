"""Dates in metadata: parse them, and find the day of a call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from hybrid_search.text.filters import leaves

CALL_DATES = ("call_date", "date")
"""Fields that usually hold the day of a call, in order of preference."""

_ISO_8601 = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ]\d\d:?\d\d.*)?", re.DOTALL)


def parse_date(value: object) -> date | None:
    """Return the day of an ISO 8601 date or time, None for anything else."""
    match = _ISO_8601.fullmatch(value) if isinstance(value, str) else None
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def find_call_date(metadata: Mapping[str, Any]) -> date | None:
    """Return the day of a call: one of `CALL_DATES`, else the first date in its metadata.

    Raises the InputError of `leaves` for a value that no backend can store.
    """
    days: dict[str, date] = {}
    for name, _, value in leaves(metadata):
        day = parse_date(value)
        if day:
            days.setdefault(name, day)
    return next((days[name] for name in (*CALL_DATES, *days) if name in days), None)
