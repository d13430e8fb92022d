"""A connection to one cluster: it tries again or waits, translates errors, and asks who it is."""

from __future__ import annotations

import logging
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
    Action,
    Outcome,
    read_outcomes,
    split_actions,
)
from hybrid_search.backends.server.transport.client import CBOR, JSON, LINES, Client, encode_json
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
    HELLO,
    ShapeError,
    read_items,
)
from hybrid_search.credentials import Access
from hybrid_search.errors import AccessError, ServerError, UsageError

_log = logging.getLogger(__name__)


def connect(address: Address, access: Access) -> Server:
    """Return a connection to the server at `address`; nothing is sent before the first request.

    Raises:
        UsageError: If requests would be signed for AWS, and the engine takes no such signatures.
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
    """A connection to one cluster. Safe to use from several threads."""

    def __init__(self, address: Address, access: Access) -> None:
        self._client = Client(address, access)
        self._address, self._access = address, access
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

        It waits so many seconds each time; with 0 it tries as often as for a single request. While
        it waits, the stages of the ingest do too, so no document is refused as the server was down.
        """
        policy = replace(retry.REQUEST, outage=retry.OutageLog(str(self)))
        return self.with_policy(replace(policy, tries=None, total=seconds) if seconds else policy)

    @property
    def engine(self) -> str:
        """The name of the engine, as in `dialects.DIALECTS`; may ask the server, once."""
        return self._address.engine or self._identify()[0]

    @property
    def version(self) -> Version:
        """The version of the server, asked once.

        Raises:
            ServerError: If it is too old, or another engine than the URL names.
        """
        engine, version = self._identify()
        found = f"{self} is {engine} {format_version(version)}"
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
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        lines: Iterable[Mapping[str, Any]] | None = None,
        binary: bool = False,
        read: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Return what `read` makes of the answer to one request (True or False for HEAD).

        If the server is busy or unreachable the request is sent again, with growing pauses.

        The `body` is sent as JSON, or `lines` of it instead. A `binary` answer comes in CBOR, which
        is faster to read if it is large. `read` raises ShapeError or ServerError if an answer is
        not usable; by default that must be a JSON object or list.

        Raises ServerError if it failed, with the HTTP status, and AccessError for 401 and 403.
        """
        if self._address.engine is None and path != "/":  # a server is asked who it is by "/"
            self._identify()
        target = path + _build_query_string(params or {})
        content, content_type = None if body is None else encode_json(body), JSON
        if lines is not None:
            content = b"".join(encode_json(line) + b"\n" for line in lines)
            content_type = LINES
        accept = CBOR if binary else JSON
        read_answer = read or (ANYTHING.read if method == "HEAD" else CONTAINER.read)

        def send_once() -> Any:
            try:
                return read_answer(self._client.send(method, target, content, content_type, accept))
            except RequestError as failure:
                raise self._translate(failure, f"{method} {path}") from failure
            except (ShapeError, RecursionError) as error:
                raise build_shape_error(error, self._address, f"{method} {path}") from error

        return retry.attempt(send_once, self._policy)

    def bulk(self, actions: Iterable[Action]) -> Iterator[Outcome]:
        """Yield the outcome of each action, sent once; a refused login raises AccessError."""
        for chunk in split_actions(actions):
            yield from self._send_chunk(chunk)

    def _send_chunk(self, actions: list[Action]) -> Iterator[Outcome]:
        content = b"".join(action.encode() for action in actions)
        try:
            items = read_items(self._client.send("POST", "/_bulk", content, LINES, JSON))
            yield from read_outcomes(actions, items)
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

    def send_all(self, actions: Iterable[Action]) -> Iterator[Outcome]:
        """Yield the final outcome of each action, in the order in which they become known.

        Actions that failed with a transient error are sent again, which does no harm.

        Raises:
            ServerError: If the server accepted nothing in all that time.
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
                attempts.finish()
                return
            first = transient[0]
            why, refused = first.reason or str(first.status), f"{self} did not accept"
            message = f"{refused} {len(transient)} passages: {why}"
            pause = max(outcome.retry_after for outcome in transient)
            if not attempts.wait(ServerError(message, first.status, pause)):
                raise ServerError(
                    f"{refused} {len(transient)} passages within {self._policy.total:.0f} s "
                    f"(the first is {first.action.id!r}): {why}. {retry.REMEDY}",
                    first.status,
                )
            actions = [outcome.action for outcome in transient]

    def close(self) -> None:
        """Close the sockets; the next request opens others."""
        self._client.close()

    def __str__(self) -> str:
        return str(self._address)

    def __repr__(self) -> str:
        return f"Server({str(self)!r}, {self._access.identity})"

    def _identify(self) -> tuple[str, Version]:
        """Return engine and version of the server, which is asked once.

        Raises:
            ServerError: If it is neither OpenSearch nor Elasticsearch.
        """
        with self._lock:
            if self._identity is None:
                hello = self.request("GET", "/", read=ANYTHING.read)
                try:
                    version = HELLO.read(hello)["version"]
                except ShapeError as error:
                    raise ServerError(
                        f"{self} is neither OpenSearch nor Elasticsearch: GET / answered "
                        f"{reason(hello)}"
                    ) from error
                major, minor, patch = map(int, version["number"].groups())
                self._identity = recognise(version.get("distribution")).name, (major, minor, patch)
            return self._identity

    def _translate(self, failure: RequestError, request: str) -> ServerError:
        return translate_failure(failure, self._address, self._access, request)


def _build_query_string(params: Mapping[str, Any]) -> str:
    """Return the query part of a URL with its question mark, empty without parameters."""
    values = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in params.items()
    }
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
