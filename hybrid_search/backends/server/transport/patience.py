"""A server as a writer sees it: one that is away or busy is waited for, and the log says once that
this begins and once that it is over.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, Unpack

from hybrid_search.backends.server.transport import retry
from hybrid_search.backends.server.transport.base import (
    TRANSIENT_STATUSES,
    Body,
    Engine,
    Outcome,
    RequestOptions,
    Server,
)
from hybrid_search.errors import AccessError, ServerError
from hybrid_search.observability import tracing

T = TypeVar("T")

REMEDY = "What it took is safe: see to the server, and run the same command again"

ENDLESS = 10**9
"""Tries: it is the time that ends them."""

SAID_AFTER = 3.0
"""Seconds for which nothing is said: a busy server that soon goes on is no news."""

_log = logging.getLogger(__name__)


class PatientServer:
    """A `Server` that is waited for, each time up to `seconds`; with 0 of them as by any other
    request, six tries within a minute.

    What does not pass by itself (a refused login, a request that the server will not do) is raised
    at once. While a request waits, the stages behind it stand still, so no document is refused
    because its server was down.
    """

    def __init__(self, server: Server, seconds: float) -> None:
        self._server = server
        self._tries, self._seconds = (ENDLESS, seconds) if seconds else (retry.TRIES, retry.TOTAL)
        self._lock = threading.Lock()
        self._away_since: float | None = None
        """Since when, where the log has said so."""

    @property
    def engine(self) -> Engine:
        """See `Server.engine`."""
        return self._call(lambda: self._server.engine)

    @property
    def version(self) -> tuple[int, int, int]:
        """See `Server.version`."""
        return self._call(lambda: self._server.version)

    def request(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Any:
        """See `Server.request`. Raises ServerError when the server was waited for in vain."""
        options["once"] = True
        return self._call(lambda: self._server.request(method, path, **options))

    def bulk(self, actions: Iterable[Body]) -> Iterator[Outcome]:
        """See `Server.bulk`."""
        return self._server.bulk(actions)

    def send_all(self, actions: Iterable[Body]) -> Iterator[Outcome]:
        """What finally became of each action, in the order in which it was known.

        Only those that were not taken are sent again.

        Every action names its ``_id``, so one that was taken although its answer was lost does no
        harm by coming again. Raises ServerError when none was taken for so long; those left are all
        that is missing, and the same command sends them again.
        """
        wait = _Wait(self._tries, self._seconds)
        while True:
            retryable: list[Outcome] = []
            for outcome in self._server.bulk(actions):
                if outcome.is_transient:
                    retryable.append(outcome)
                else:
                    wait.since = time.monotonic()
                    yield outcome
            if not retryable:
                self._log_recovery()
                return
            reason = retryable[0].reason or str(retryable[0].status)
            if not self._wait_for_retry(
                wait,
                f"{self} did not take {len(retryable)} passages: {reason}",
                max(outcome.retry_after for outcome in retryable),
            ):
                raise ServerError(
                    _format_timeout(str(self), retryable, reason, self._seconds),
                    retryable[0].status,
                )
            actions = [outcome.action for outcome in retryable]

    def close(self) -> None:
        """See `Server.close`."""
        self._server.close()

    def __str__(self) -> str:
        return str(self._server)

    def _call(self, operation: Callable[[], T]) -> T:
        wait = _Wait(self._tries, self._seconds)
        while True:
            try:
                answer = operation()
            except ServerError as error:
                if isinstance(error, AccessError) or error.status not in TRANSIENT_STATUSES:
                    raise
                if not self._wait_for_retry(wait, str(error), error.retry_after or 0.0):
                    raise ServerError(
                        f"{error}; tried for {wait.spent:.0f} s. {REMEDY}",
                        error.status,
                        error.retry_after,
                    ) from error.__cause__
            else:
                self._log_recovery()
                return answer

    def _wait_for_retry(self, wait: _Wait, reason: str, retry_after: float) -> bool:
        """Whether there is to be a further try, for which it is then time; at least `asked` seconds
        later.
        """
        pause = wait.next_pause(retry_after)
        if pause is None:
            return False
        with self._lock:
            if self._away_since is None and wait.spent + pause > SAID_AFTER:
                self._away_since = wait.since
                _log.warning("%s; waiting for it, up to %.0f s", reason, self._seconds)
        tracing.counts["retries"] += 1
        time.sleep(pause)
        return True

    def _log_recovery(self) -> None:
        with self._lock:
            if self._away_since is not None:
                _log.warning(
                    "%s answers again, after %.0f s", self, time.monotonic() - self._away_since
                )
                self._away_since = None


@dataclass(slots=True)
class _Wait:
    """One wait: how often and how long in all, and when the server last took something."""

    tries: int
    seconds: float
    since: float = field(default_factory=time.monotonic)
    _pauses: Iterator[float] = field(init=False)

    def __post_init__(self) -> None:
        self._pauses = retry.pauses(self.tries, retry.FIRST, retry.MOST)

    @property
    def spent(self) -> float:
        """Seconds since the server last took something."""
        return time.monotonic() - self.since

    def next_pause(self, retry_after: float) -> float | None:
        """Seconds until the next try, growing, and at least those `asked` for; None where that is
        too late.
        """
        pause, remaining = next(self._pauses, None), self.seconds - self.spent
        return (
            None
            if pause is None or remaining <= 0 or retry_after > remaining
            else min(max(pause, retry_after), remaining)
        )


def _format_timeout(server: str, retryable: list[Outcome], reason: str, seconds: float) -> str:
    first = retryable[0].action.get("_id")
    return f"{server} did not take {len(retryable)} passages within {seconds:.0f} s (the first is {first!r}): {reason}. {REMEDY}"
