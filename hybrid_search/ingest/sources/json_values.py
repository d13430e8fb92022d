"""Conversion of values to JSON: times, decimals, UUIDs, numpy and pandas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

from hybrid_search.errors import InputError


def to_json_value(value: Any, key: str) -> Any:
    """Return `value` as a JSON value; NaN, NaT and other missing values become None.

    Times become ISO 8601, integral decimals become integers.

    Raises:
        InputError: If `value`, the value of `key`, has a type without a JSON equivalent.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping):
        return {str(name): to_json_value(item, f"{key}.{name}") for name, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return _list_to_json(value, key)
    if is_missing(value) or type(value) is float:
        return None if is_missing(value) else value
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, np.generic) and not isinstance(value, (np.bytes_, np.void)):
        is_time = isinstance(value, np.datetime64)
        return to_json_value((value.astype("datetime64[us]") if is_time else value).item(), key)
    kind = "binary" if isinstance(value, bytes) else f"a {type(value).__name__}"
    raise InputError(
        f"{key!r} is {kind}, which JSON cannot hold: leave the column out, or write it as text"
    )


def _list_to_json(value: Any, key: str) -> Any:
    items = list(value)
    are_pairs = bool(items) and all(isinstance(item, tuple) and len(item) == 2 for item in items)
    if are_pairs and isinstance(value, list):  # an Arrow map
        return to_json_value(dict(items), key)
    return [to_json_value(item, key) for item in items]


def is_missing(value: Any) -> bool:
    """Return whether `value` is a missing value: None, NaN, NaT, or NA of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (float, np.floating)):
        return math.isnan(value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return isinstance(value, Decimal) and value.is_nan()
