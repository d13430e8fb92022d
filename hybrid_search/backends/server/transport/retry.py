"""The retry loop: a request is sent again after a transient failure, as a policy allows."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from hybrid_search.errors import AccessError, ServerError
from hybrid_search.observability import tracing

T = TypeVar("T")

_log = logging.getLogger(__name__)

TRANSIENT_STATUSES = (0, 408, 429, 502, 503, 504)
"""The connection was lost (0), or the server is busy, starting, or lost behind its gateway."""

QUIET_SECONDS = 3.0
"""Seconds of waiting that are not logged: a server that is busy for a moment is no news."""

SLOW_TRY = 2.0
"""Seconds of a first try after which a warning is logged."""

REMEDY = "What it took is safe: see to the server, and run the same command again"
"""Ends the error for a server that a writer has waited for."""


class OutageLog:
    """Logs when waiting for a server begins and ends, once for all threads that wait for it."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._away_since: float | None = None
        """When the outage began that the log has reported; None without one."""

    def report_wait(self, error: ServerError, spent: float, pause: float, total: float) -> None:
        """Log that the server is waited for, unless that is known or was only a moment."""
        with self._lock:
            if self._away_since is None and spent + pause > QUIET_SECONDS:
                self._away_since = time.monotonic() - spent
                _log.warning("%s; waiting for it, up to %.0f s", error, total)

    def report_answer(self) -> None:
        """Log that the server answers again, if an outage was reported."""
        with self._lock:
            if self._away_since is not None:
                seconds = time.monotonic() - self._away_since
                _log.warning("%s answers again, after %.0f s", self._server, seconds)
                self._away_since = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a request is tried, and for how long.

    `tries` limits the tries (None: only the time is limited), `total` the seconds in which the
    server accepts nothing. `first` and `longest` are the upper limits, in seconds, of the first
    pause and of any pause. A writer that waits for its server has an `outage` to log that.
    """

    tries: int | None = 6
    total: float = 60.0
    first: float = 0.5
    longest: float = 20.0
    outage: OutageLog | None = None

    def draw_pause(self, number: int) -> float:
        """Return the seconds before a further try, whose `number` counts from 0."""
        # at random, so that many clients do not come back at once
        limit = min(self.longest, self.first * 2.0 ** min(number, 60))
        return random.uniform(0, limit)  # noqa: S311 # jitter, no secret


REQUEST = RetryPolicy()
"""The policy of a single request: six tries within a minute."""


class Attempts:
    """The tries of one operation under a policy."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._tries = 0
        self._accepted_at = time.monotonic()

    def note_progress(self) -> None:
        """Start counting the seconds anew: the server has accepted something."""
        self._accepted_at = time.monotonic()

    def wait(self, error: ServerError) -> bool:
        """Sleep until the next try; return False if `error` is final."""
        self._tries += 1
        pause = self._next_pause(error.retry_after or 0.0) if _is_transient(error) else None
        if pause is None:
            return False
        tracing.counts["retries"] += 1
        if self._policy.outage:
            self._policy.outage.report_wait(error, self._spent, pause, self._policy.total)
        else:
            self._log_wait(error)
        time.sleep(pause)
        return True

    def _log_wait(self, error: ServerError) -> None:
        """Log why a request is sent again: the first time as a warning."""
        # if nothing listens there, the final error says so soon, and two would look like two faults
        is_quick = not error.status and self._spent < SLOW_TRY
        level = logging.WARNING if self._tries == 1 and not is_quick else logging.INFO
        _log.log(level, "%s; trying again", error)

    def finish(self) -> None:
        """Note that the server has answered."""
        if self._policy.outage:
            self._policy.outage.report_answer()

    def build_final_error(self, error: ServerError) -> ServerError:
        """Return `error`, the last one, with how long or how often the operation was tried."""
        if self._policy.outage and _is_transient(error):
            message = f"{error}; tried for {self._spent:.0f} s. {REMEDY}"
        elif not self._policy.outage and self._tries > 1:
            message = f"{error} (after {self._tries} tries in {self._spent:.0f} s)"
            if not error.status:
                message += ". Is this the right URL, and does the server run?"
        else:
            return error
        return type(error)(message, error.status, error.retry_after)

    @property
    def _spent(self) -> float:
        return time.monotonic() - self._accepted_at

    def _next_pause(self, retry_after: float) -> float | None:
        """Return the next pause, at least `retry_after` seconds; None if that is too late."""
        remaining = self._policy.total - self._spent
        if self._tries == self._policy.tries or remaining <= 0 or retry_after > remaining:
            return None
        return min(max(self._policy.draw_pause(self._tries - 1), retry_after), remaining)


def _is_transient(error: ServerError) -> bool:
    return error.status in TRANSIENT_STATUSES and not isinstance(error, AccessError)


def attempt(operation: Callable[[], T], policy: RetryPolicy) -> T:
    """Return the result of `operation`, tried again while it fails with a transient error."""
    attempts = Attempts(policy)
    while True:
        try:
            result = operation()
        except ServerError as error:
            if not attempts.wait(error):
                raise attempts.build_final_error(error) from error.__cause__
        else:
            attempts.finish()
            return result
