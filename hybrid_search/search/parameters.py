"""Validation of arguments: each error names one parameter, its value, and what is allowed.

The package imports this module at once, so it must not import anything heavy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from hybrid_search.errors import UsageError, show_value

MAX_PHRASE = 5_000
"""Maximum characters of a phrase, about 1,000 words. Servers refuse queries with more than 1,024.
"""

MAX_PHRASES = 100
"""Maximum number of phrases in one query; each is a separate search."""

MAX_CONTEXT = 10_000
"""Maximum characters of a context, which the encoder reads in full."""


MAX_SPEAKER = 1_000
"""Maximum characters of a speaker's name."""


def check_text(name: str, value: Any, longest: int | None = None) -> None:
    """Raise UsageError unless `value` is text of at most `longest` characters."""
    if not isinstance(value, str):
        raise _refuse(name, value, "a string")
    if longest is not None and len(value) > longest:
        raise UsageError(
            f"{name} has {len(value):,} characters: it may have at most {longest:,}. Shorten it"
        )


def check_phrase(name: str, value: Any) -> None:
    """Raise UsageError unless `value` is a non-blank phrase."""
    check_text(name, value, MAX_PHRASE)
    if not value.strip():
        raise UsageError(f"the {name} is blank ({show_value(value)}): say what to look for")


def check_speaker(name: str, value: Any) -> None:
    """Raise UsageError unless `value` is a possible speaker name."""
    check_text(name, value, MAX_SPEAKER)
    if not value.strip():
        raise UsageError(f"the {name} is blank ({show_value(value)}): name one, or leave it out")


def check_context(name: str, value: Any) -> None:
    """Raise UsageError unless `value` is None or a text of at most `MAX_CONTEXT` characters."""
    if value is not None:
        check_text(name, value, MAX_CONTEXT)


def check_integer(name: str, value: Any, low: float, high: float = math.inf) -> None:
    """Raise UsageError unless `value` is an integer from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        limits = f"from {low:,} to {high:,}" if high < math.inf else f"of at least {low:,}"
        raise _refuse(name, value, f"an integer {limits}")


def check_number(name: str, value: Any, allowed: str, low: float, high: float) -> None:
    """Raise UsageError unless `value` is from `low` to `high`; `allowed` words the limits."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not low <= _as_float(value) <= high:
        raise _refuse(name, value, allowed)


def _as_float(value: Any) -> float:
    """Convert to float: numpy would cast the limits to its own type, and overflow."""
    try:
        return float(value)
    except OverflowError:  # an integer too large for a float
        return math.inf if value > 0 else -math.inf


def check_choice(name: str, value: Any, choices: Sequence[str | bool | None]) -> None:
    """Raise UsageError unless `value` is one of `choices`, and of the same type."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise _refuse(name, value, " or ".join(map(repr, choices)))


def _refuse(name: str, value: Any, allowed: str) -> UsageError:
    return UsageError(f"{name} is {show_value(value)}: it must be {allowed}")
