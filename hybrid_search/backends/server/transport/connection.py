"""A connection to one cluster: it tries again or waits, translates errors, and asks who it is."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Self
from urllib.parse import quote, urlencode

from hybrid_search.backends.server.dialects import find_dialect, recognise
from hybrid_search.backends.server.dialects.base import Version, format_version
from hybrid_search.backends.server.transport import retry
from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.bulk import (
    BUSY,
    Body,
    Outcome,
    build_outcome,
    pair_items,
    split_actions,
)
from hybrid_search.backends.server.transport.client import (
    CBOR,
    JSON,
    LINES,
    Client,
    encode_json,
)
from hybrid_search.backends.server.transport.errors import (
    UNUSABLE,
    RequestError,
    build_shape_error,
    error_kind,
    is_blocked,
    reason,
    translate_failure,
)
from hybrid_search.backends.server.transport.shape import (
    ANYTHING,
    CONTAINER,
    ShapeError,
    read_items,
)
from hybrid_search.credentials import Access
from hybrid_search.errors import AccessError, ServerError, UsageError

REMEDY = "What it took is safe: see to the server, and run the same command again"
"""Ends the error for a server that a writer has waited for."""

_log = logging.getLogger(__name__)


def connect(address: Address, access: Access) -> Server:
    """Return a connection to the server at `address`.

    Nothing is sent before the first request, not even to ask for the engine.

    Raises:
        UsageError: If requests would be signed for AWS, and the engine takes no signatures.
    """
    access = access.with_username(address.username)
    warn(address, access)
    if access.aws_region is not None and address.engine is not None:
        dialect = find_dialect(address.engine)
        if not dialect.takes_aws_signatures:
            raise UsageError(
                "HYBRID_SEARCH_AWS_REGION is for Amazon OpenSearch Service: "
                f"{dialect.title} takes a password, an API key or a token"
            )
    return Server(address, access)


class Server:
    """A connection to one cluster. Safe to use from several threads.

    It is asked for its engine if the address does not name that.
    """

    def __init__(self, address: Address, access: Access) -> None:
        self._client = Client(address, access)
        self._address = address
        self._access = access
        self._policy = retry.REQUEST
        self._lock = threading.Lock()
        self._identity: tuple[str, Version] | None = None

    def with_policy(self, policy: retry.RetryPolicy) -> Self:
        """Return the same server, whose requests are tried as `policy` says."""
        server = copy(self)
        server._policy = policy
        return server

    def wait(self, seconds: float) -> Self:
        """Return the same server as a writer needs it: busy or lost, it is waited for.

        It waits so many seconds each time; with 0 it tries as often as for a single request: six
        times within a minute. An error that is not transient (a refused login, a request that the
        server will not do) is raised at once. While a request waits, the stages of the ingest wait
        with it, so no document is refused because the server was down.
        """
        policy = retry.REQUEST
        if seconds:
            policy = replace(policy, tries=None, total=seconds)
        outage = retry.OutageLog(str(self), policy.total)
        return self.with_policy(
            replace(
                policy,
                on_wait=outage.report_wait,
                on_answer=outage.report_answer,
                remedy=REMEDY,
            )
        )

    @property
    def engine(self) -> str:
        """The name of the engine, as in `dialects.DIALECTS`; may ask the server, once."""
        return self._address.engine or self._identify()[0]

    @property
    def version(self) -> Version:
        """Return the version of the server, which is requested once.

        Raises:
            ServerError: If it is too old, or another engine than the URL names.
        """
        engine, version = self._identify()
        found = f"{self._address} is {engine} {format_version(version)}"
        if engine != self.engine:
            raise ServerError(f"{found}, but the URL says {self.engine}: begin it with {engine}+")
        if why := find_dialect(engine).explain_unsupported(version):
            raise ServerError(f"{found}: {why}")
        return version

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Body | None = None,
        body: Any = None,
        lines: Iterable[Body] | None = None,
        binary: bool = False,
        read: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Return what `read` makes of the answer to one request (True or False for HEAD).

        If the server is busy or unreachable the request is sent again, with growing pauses.

        Args:
            method: The method.
            path: The path, without parameters.
            params: The query part of the URL.
            body: The body, sent as JSON.
            lines: Sent as newline-delimited JSON, instead of a body.
            binary: Asks for the answer in CBOR, which is shorter and faster to read if it is large.
            read: Returns what is used of an answer; raises ShapeError or ServerError if it is not
                usable. By default an answer must be a JSON object or list.

        Raises ServerError if it failed, with the HTTP status, and AccessError if the server answers
        with 401 or 403.
        """
        if self._address.engine is None:
            self._identify()
        target = path + build_query_string(params or {})
        content = encode_json(body)
        if lines is not None:
            content = b"".join(encode_json(line) + b"\n" for line in lines)
        content_type = JSON if lines is None else LINES
        read = read or (ANYTHING.read if method == "HEAD" else CONTAINER.read)
        return self._send(
            method, path, target, content or None, content_type, CBOR if binary else JSON, read
        )

    def bulk(self, actions: Iterable[Body]) -> Iterator[Outcome]:
        """Yield the outcome of each action, which is sent once.

        Actions are those of opensearch-py's bulk helper: ``_op_type``, ``_index``, ``_id`` and
        ``_source``, which is an object or its JSON. Each request is bounded in count and bytes. A
        transient failure is never raised: it is an outcome with one of `TRANSIENT_STATUSES`.

        Raises AccessError if the login is refused, because then nothing that follows would be
        accepted.
        """
        for chunk in split_actions(actions):
            yield from self._send_chunk(chunk)

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
            for outcome in self.bulk(actions):
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
        """Close the sockets; the next request opens others."""
        self._client.close()

    def __str__(self) -> str:
        return str(self._address)

    def __repr__(self) -> str:
        return f"Server({str(self._address)!r}, {self._access.identity})"

    def _identify(self) -> tuple[str, Version]:
        """Return engine and version of the server, which is asked once."""
        with self._lock:
            if self._identity is None:
                hello = self._send("GET", "/", "/", None, JSON, JSON, ANYTHING.read)
                self._identity = parse_hello(hello, self._address)
            return self._identity

    def _send(
        self,
        method: str,
        path: str,
        target: str,
        content: bytes | None,
        content_type: str,
        accept: str,
        read: Callable[[Any], Any],
    ) -> Any:
        """Return what `read` makes of the answer; `target` is the path with its parameters."""

        def send_once() -> Any:
            try:
                return read(self._client.send(method, target, content, content_type, accept))
            except RequestError as failure:
                raise self._translate(failure, f"{method} {path}") from failure
            except (ShapeError, RecursionError) as error:
                raise build_shape_error(error, self._address, f"{method} {path}") from error

        return retry.attempt(send_once, self._policy)

    def _send_chunk(self, chunk: list[tuple[Body, bytes]]) -> Iterator[Outcome]:
        """Yield the outcomes of the actions of one request."""
        actions = [action for action, _ in chunk]
        content = b"".join(lines for _, lines in chunk)
        try:
            items = read_items(self._client.send("POST", "/_bulk", content, LINES, JSON))
            for action, item in pair_items(actions, items):
                yield build_outcome(action, item)
        except (ShapeError, RecursionError) as error:
            raise build_shape_error(error, self._address, "POST /_bulk") from error
        except RequestError as failure:
            lost = self._translate(failure, "POST /_bulk")
            if isinstance(lost, AccessError) or lost.status == UNUSABLE:  # the next would, too
                raise lost from failure
            status = BUSY if is_blocked(failure.data) else lost.status
            kind = error_kind(failure.data)
            for action in actions:
                yield Outcome(action, status, str(lost), lost.retry_after or 0.0, kind)

    def _build_timeout(self, transient: list[Outcome], reason: str) -> ServerError:
        first_id = transient[0].action.get("_id")
        return ServerError(
            f"{self} did not accept {len(transient)} passages within {self._policy.total:.0f} s "
            f"(the first is {first_id!r}): {reason}. {REMEDY}",
            transient[0].status,
        )

    def _translate(self, failure: RequestError, request: str) -> ServerError:
        return translate_failure(failure, self._address, self._access, request)


def parse_hello(hello: Any, address: Address) -> tuple[str, Version]:
    """Return engine and version from the answer of the server at `address` to ``GET /``.

    Raises:
        ServerError: If it is neither OpenSearch nor Elasticsearch.
    """
    version = hello.get("version") if isinstance(hello, Mapping) else None
    number = (
        re.match(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", str(version.get("number")))
        if isinstance(version, Mapping)
        else None
    )
    if not isinstance(version, Mapping) or number is None:
        raise ServerError(
            f"{address} is neither OpenSearch nor Elasticsearch: GET / answered {reason(hello)}"
        )
    dialect = recognise(version.get("distribution"))
    return dialect.name, (int(number[1]), int(number[2]), int(number[3]))


def build_query_string(params: Body) -> str:
    """Return the query part of a URL with its question mark, empty without parameters.

    Booleans are written as servers write them, lists with commas; None is left out.
    """
    values = {name: _format_value(value) for name, value in params.items() if value is not None}
    return f"?{urlencode(values, quote_via=quote)}" if values else ""


def warn(address: Address, access: Access) -> None:
    """Log, once per connection, what others on the network could read or fake."""
    if not address.is_secure and not address.is_loopback:
        _log.warning(
            "%s is not encrypted: texts, vectors and the login can be read on the way; use https",
            address,
        )
    if address.is_secure and not access.verify:
        _log.warning(
            "HYBRID_SEARCH_VERIFY is false: whoever answers as %s is trusted, "
            "and can read all that is sent",
            address,
        )


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
