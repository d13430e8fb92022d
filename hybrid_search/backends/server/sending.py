"""Requests of a writer, sent until the server took or refused them for good: an ingest outlives a server that is killed and started again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from hybrid_search import telemetry
from hybrid_search.backends.server import retry
from hybrid_search.backends.server.base import Body, Outcome, Server
from hybrid_search.errors import ServerError

T = TypeVar("T")

PATIENCE = 180.0
"""Seconds for which a server may take nothing. One that is killed and started again answers after 35 s, on a busy machine after 90."""

TRIES = 100
"""Rounds at most; `PATIENCE` is over before."""

_log = logging.getLogger(__name__)


def sent(server: Server, actions: Iterable[Body], patience: float | None = None) -> Iterator[Outcome]:
    """What finally became of each action, in the order in which it was known. Only those that were not taken are sent again.

    Every action names its ``_id``, so one that was taken although its answer was lost does no harm by coming again. Raises ServerError when
    none was taken for `patience` seconds (default: `PATIENCE`); those left are all that is missing, and the same command sends them again.
    """
    most = PATIENCE if patience is None else patience
    pauses = retry.pauses(TRIES, retry.FIRST, retry.MOST)
    since = time.monotonic()
    while True:
        later: list[Outcome] = []
        for outcome in server.bulk(actions):
            if outcome.passing:
                later.append(outcome)
            else:
                since = time.monotonic()
                yield outcome
        if not later:
            return
        why = later[0].reason or str(later[0].status)
        pause = max(next(pauses, retry.MOST), *(outcome.retry_after for outcome in later))
        if time.monotonic() + pause > since + most:
            raise ServerError(_missing(server, later, why, most), later[0].status)
        telemetry.counts["retries"] += len(later)
        _log.info("%d actions were not taken (%s): again in %.1f s", len(later), why, pause)
        time.sleep(pause)
        actions = [outcome.action for outcome in later]


def _missing(server: Server, later: list[Outcome], why: str, most: float) -> str:
    first = later[0].action.get("_id")
    return (
        f"{server} did not take {len(later)} passages within {most:.0f} s (the first is {first!r}): {why}. "
        "What it took is safe: see to the server, and run the same command again"
    )


def patiently(ask: Callable[[], T]) -> T:
    """What `ask` gives, asked for again while the server is away or busy. Raises ServerError when it is after `PATIENCE` seconds."""
    return retry.attempt(ask, TRIES, PATIENCE)
