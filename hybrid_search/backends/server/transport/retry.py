"""Asking again for what passes by itself: exponential backoff with full jitter, so that many
clients do not come back at once.
"""

from __future__ import annotations

import itertools
import logging
import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from hybrid_search.backends.server.transport.base import TRANSIENT_STATUSES
from hybrid_search.errors import AccessError, ServerError
from hybrid_search.observability import tracing

T = TypeVar("T")

TRIES = 6
FIRST = 0.5
"""Seconds: the most that the first pause may last. Each further one may last twice as long."""
MOST = 20.0
"""Seconds: the most that any pause may last."""
TOTAL = 60.0
"""Seconds after which a request is not tried again, however few tries there were."""

_log = logging.getLogger(__name__)


def attempt(operation: Callable[[], T], tries: int = TRIES, total: float = TOTAL) -> T:
    """What `ask` gives, asked for again while it raises what passes, and no sooner than the server
    wants to be asked.

    Raises the ServerError of the last of `tries`, or of the first whose pause would end after
    `total` seconds.
    """
    started_at, waits = time.monotonic(), pauses(tries, FIRST, MOST)
    for number in itertools.count(1):
        try:
            return operation()
        except ServerError as error:
            wait = _next_wait(error, next(waits, None), total - (time.monotonic() - started_at))
            if wait is None:
                raise _build_final_error(
                    error, number, time.monotonic() - started_at
                ) from error.__cause__
            tracing.counts["retries"] += 1
            _log.log(logging.WARNING if number == 1 else logging.INFO, "%s; trying again", error)
        time.sleep(wait)
    raise AssertionError("counting has no end")


def pauses(tries: int = TRIES, first: float = FIRST, longest: float = MOST) -> Iterator[float]:
    """Seconds to wait before each try but the first: ``tries - 1`` of them, the n-th anywhere from
    0 to ``first * 2**n``, at most `most`.
    """
    for number in range(tries - 1):
        yield random.uniform(0, min(longest, first * 2.0 ** min(number, 60)))  # noqa: S311 # jitter, no secret


def _next_wait(error: ServerError, wait: float | None, remaining: float) -> float | None:
    """Seconds until the next try, at least what the server asked for; None if there is to be none."""
    if wait is None or isinstance(error, AccessError) or error.status not in TRANSIENT_STATUSES:
        return None
    wait = max(wait, error.retry_after or 0.0)
    return wait if wait <= remaining else None


def _build_final_error(error: ServerError, tries: int, spent: float) -> ServerError:
    return (
        error
        if tries == 1
        else type(error)(
            f"{error} (after {tries} tries in {spent:.0f} s)", error.status, error.retry_after
        )
    )
