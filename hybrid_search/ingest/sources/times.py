"""Times of turns as sources write them."""

from __future__ import annotations

import re
from typing import Any

from hybrid_search.errors import InputError
from hybrid_search.text.values import read_instant

_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")
_MILLISECONDS = re.compile(r"(?:(?i:_ms)|[a-z]Ms|(?i:milli\w*))$")


def to_milliseconds(value: Any, name: str) -> int:
    """Return a time as milliseconds.

    A text with colons is hours, minutes and seconds, or minutes and seconds. A number is seconds,
    unless `name`, its column or key, ends in ``_ms``, ``Ms`` or ``Millis``. An instant in ISO 8601
    is counted from 1970, see `count_from_first`.

    Raises:
        InputError: If it is none of these.
    """
    if isinstance(value, str):
        value = value.strip()
        instant = read_instant(value)
        if instant is not None:
            return instant // 1000
        value = value.replace(",", ".")
        if clock := _CLOCK.fullmatch(value):
            hours, minutes, seconds = map(float, clock.groups(default="0"))
            return round(1000 * (3600 * hours + 60 * minutes + seconds))
    try:
        return round(float(value) * (1 if _MILLISECONDS.search(name) else 1000))
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            "a time is neither seconds, nor milliseconds in a column *_ms, HH:MM:SS or ISO 8601"
        ) from None
