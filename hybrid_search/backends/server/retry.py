"""Waiting before something is tried again: exponential backoff with full jitter, so that many clients do not come back at once."""

from __future__ import annotations

import random
from collections.abc import Iterator

TRIES = 6
FIRST = 0.5
"""Seconds: the most that the first pause may last. Each further one may last twice as long."""
MOST = 20.0
"""Seconds: the most that any pause may last."""
TOTAL = 60.0
"""Seconds after which a request is not tried again, however few tries there were."""


def pauses(tries: int = TRIES, first: float = FIRST, most: float = MOST) -> Iterator[float]:
    """Seconds to wait before each try but the first: ``tries - 1`` of them, the n-th anywhere from 0 to ``first * 2**n``, at most `most`."""
    for number in range(tries - 1):
        yield random.uniform(0, min(most, first * 2.0**number))  # noqa: S311 # jitter, no secret
