"""Typed values of text in metadata: the instant of a date or time, or a number.

JSON has no dates, and a CSV cell is always text. So text written as a date or number also has a
typed value, and conditions and sorting compare these values. They are the same in every store: an
instant is in microseconds since 1970 in UTC, and a number is a float. A time without an offset is
taken as UTC.
"""

from __future__ import annotations

import re
from calendar import isleap, monthrange
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

Form = Literal["written", "numbers", "dates"]
"""The form in which a metadata value is compared: as written, as a number, or as an instant."""

FORMS: Mapping[str, Form] = {"string": "written", "numeric string": "numbers", "date": "dates"}
"""The types of a text field, each with the form that its ranges compare.

A field has the last of these types that one of its texts has.
"""

_DAY = r"\d{4}-\d\d-\d\d"
_CLOCK = r"\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?"
_OFFSET = r"Z|UTC|[+-]\d\d(?::?\d\d)?"
_TIME = re.compile(rf"({_DAY})(?:[T ]({_CLOCK})(?: ?({_OFFSET}))?)?", re.ASCII)
_MONTH = re.compile(r"(\d{4})(?:-(\d\d))?", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)

_MAX_DIGITS = 15
"""Floats distinguish all numbers with this many digits. Longer ones are codes, as of cards."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY_MICROSECONDS = timedelta(days=1) // _MICROSECOND


def read_value(text: str) -> tuple[str, float | str]:
    """Return the type of a text (a key of `FORMS`), and its value in the form of that type."""
    if text[4:5] == "-" and (period := _read_time(text)) is not None:
        return "date", period[0]
    if text[:1] in "-0123456789" and (number := read_number(text)) is not None:
        return "numeric string", number
    return "string", text


def select_comparable(values: Iterable[object], kind: str) -> list[Any]:
    """Return the values by which the values of a field of this type are compared.

    In a text field of dates or numbers, other text is left out.
    """
    if FORMS.get(kind, "written") == "written":
        return list(values)
    typed_values = (read_value(str(value)) for value in values)
    return [value for value_kind, value in typed_values if value_kind == kind]


def read_number(text: str) -> float | None:
    """Parse a number, written as in JSON without an exponent; None for anything else."""
    is_number = len(text) <= _MAX_DIGITS + 2 and _NUMBER.fullmatch(text)
    return float(text) if is_number and sum(map(str.isdigit, text)) <= _MAX_DIGITS else None


def read_period(text: str) -> tuple[int, int] | None:
    """Return the first microsecond of a period, and the first one after it.

    A period is a year, a month, a day or an instant, in ISO 8601. Returns None for anything else.
    """
    if match := _MONTH.fullmatch(text):
        year, month = int(match[1]), int(match[2] or 1)
        if not (year and 1 <= month <= 12):
            return None
        days = monthrange(year, month)[1] if match[2] else 365 + isleap(year)
        start = _count_microseconds(datetime(year, month, 1, tzinfo=UTC))
        return start, start + days * _DAY_MICROSECONDS
    return _read_time(text)


def read_instant(text: str) -> int | None:
    """Parse a date with a time of day to microseconds since 1970; None for anything else."""
    period = _read_time(text)
    return period[0] if period and period[1] - period[0] == 1 else None


def _read_time(text: str) -> tuple[int, int] | None:
    match = _TIME.fullmatch(text)
    if not match:
        return None
    day, clock, offset = match.groups()
    offset = "Z" if offset in (None, "UTC") else offset
    try:
        start = _count_microseconds(datetime.fromisoformat(f"{day}T{clock or '00:00'}{offset}"))
    except ValueError:
        return None
    return start, start + (1 if clock else _DAY_MICROSECONDS)


def _count_microseconds(time: datetime) -> int:
    return (time - _EPOCH) // _MICROSECOND


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
