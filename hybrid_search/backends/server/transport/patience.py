"""A server as a writer needs it: if it is away or busy, it is waited for, for minutes.

The log says once that the wait begins and once that it is over.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, Unpack

from hybrid_search.backends.server.transport import retry
from hybrid_search.backends.server.transport.base import (
    Body,
    Engine,
    Outcome,
    RequestOptions,
    Server,
)
from hybrid_search.errors import ServerError

T = TypeVar("T")

REMEDY = "What it took is safe: see to the server, and run the same command again"

QUIET_SECONDS = 3.0
"""Seconds of waiting that are not logged: a server that is busy for a moment is no news."""

_log = logging.getLogger(__name__)


class PatientServer:
    """A `Server` that waits for a busy or lost server, up to `seconds` each time.

    With 0 seconds it tries as often as for a single request: six times within a minute.

    An error that is not transient (a refused login, a request that the server will not do) is
    raised at once. While a request waits, the stages of the ingest wait with it, so no document is
    refused because the server was down.
    """

    def __init__(self, server: Server, seconds: float) -> None:
        self._server = server
        self._outage = OutageLog(str(server), seconds or retry.REQUEST.total)
        self._policy = replace(
            retry.REQUEST,
            on_wait=self._outage.report_wait,
            on_answer=self._outage.report_answer,
            remedy=REMEDY,
        )
        if seconds:
            self._policy = replace(self._policy, tries=None, total=seconds)

    @property
    def engine(self) -> Engine:
        """See `Server.engine`."""
        return self._call(lambda: self._server.engine)

    @property
    def version(self) -> tuple[int, int, int]:
        """See `Server.version`."""
        return self._call(lambda: self._server.version)

    def request(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Any:
        """Return the answer to one request (see `Server.request`).

        Raises ServerError if the server did not answer in all that time.
        """
        options["policy"] = self._policy
        return self._server.request(method, path, **options)

    def bulk(self, actions: Iterable[Body]) -> Iterator[Outcome]:
        """See `Server.bulk`."""
        return self._server.bulk(actions)

    def send_all(self, actions: Iterable[Body]) -> Iterator[Outcome]:
        """Yield the final outcome of each action, in the order in which they become known.

        Only actions that failed with a transient error are sent again. Every action names its
        ``_id``, so an action that was accepted although its answer was lost does no harm by being
        sent twice.

        Raises ServerError if the server accepted nothing in all that time. Actions without an
        outcome are missing; the same command sends them again.
        """
        attempts = retry.Attempts(self._policy)
        while True:
            transient: list[Outcome] = []
            for outcome in self._server.bulk(actions):
                if outcome.is_transient:
                    transient.append(outcome)
                else:
                    attempts.note_progress()
                    yield outcome
            if not transient:
                self._policy.on_answer()
                return
            reason = transient[0].reason or str(transient[0].status)
            message = f"{self} did not accept {len(transient)} passages: {reason}"
            pause = max(outcome.retry_after for outcome in transient)
            if not attempts.wait(ServerError(message, transient[0].status, pause)):
                raise self._build_timeout(transient, reason)
            actions = [outcome.action for outcome in transient]

    def close(self) -> None:
        """See `Server.close`."""
        self._server.close()

    def __str__(self) -> str:
        return str(self._server)

    def _call(self, operation: Callable[[], T]) -> T:
        return retry.attempt(operation, self._policy)

    def _build_timeout(self, transient: list[Outcome], reason: str) -> ServerError:
        first_id = transient[0].action.get("_id")
        return ServerError(
            f"{self} did not accept {len(transient)} passages within {self._policy.total:.0f} s "
            f"(the first is {first_id!r}): {reason}. {REMEDY}",
            transient[0].status,
        )


class OutageLog:
    """Logs when waiting for a server begins and ends, once for all threads that wait for it."""

    def __init__(self, server: str, seconds: float) -> None:
        self._server, self._seconds = server, seconds
        self._lock = threading.Lock()
        self._away_since: float | None = None
        """When the outage began that the log has reported; None without one."""

    def report_wait(self, wait: retry.Wait) -> None:
        """Log that the server is waited for, unless that is known or was only a moment."""
        with self._lock:
            if self._away_since is None and wait.spent + wait.pause > QUIET_SECONDS:
                self._away_since = time.monotonic() - wait.spent
                _log.warning("%s; waiting for it, up to %.0f s", wait.error, self._seconds)

    def report_answer(self) -> None:
        """Log that the server answers again, if an outage was reported."""
        with self._lock:
            if self._away_since is not None:
                seconds = time.monotonic() - self._away_since
                _log.warning("%s answers again, after %.0f s", self._server, seconds)
                self._away_since = None
