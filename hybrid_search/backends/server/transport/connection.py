"""A connection to one cluster, over either client library.

It tries again after transient failures, translates errors, and reads the version once.
"""

from __future__ import annotations

import itertools
import json
import logging
import re
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, Unpack
from urllib.parse import quote, urlencode

import certifi

from hybrid_search.backends.server.transport import retry
from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.answers import NODES
from hybrid_search.backends.server.transport.base import Body, Engine, Outcome, RequestOptions
from hybrid_search.backends.server.transport.cbor import CBOR
from hybrid_search.backends.server.transport.errors import (
    UNUSABLE,
    LibraryError,
    build_shape_error,
    error_kind,
    is_blocked,
    reason,
    translate_failure,
)
from hybrid_search.backends.server.transport.shape import ANYTHING, CONTAINER, ShapeError
from hybrid_search.credentials import Access
from hybrid_search.errors import AccessError, ServerError, UsageError

MINIMUM: dict[Engine, tuple[int, int, int]] = {
    "opensearch": (2, 12, 0),
    "elasticsearch": (8, 13, 0),
}
"""The oldest servers with everything that an index needs."""

POOL = 32
"""Sockets that a connection keeps open. More threads than that wait, or open one briefly."""
CHUNK_ACTIONS = 500
CHUNK_BYTES = 8 * 1024 * 1024
"""The largest bulk request. Small instances of managed services accept 10 MB and no more."""

BULK: dict[str, Any] = {
    "chunk_size": CHUNK_ACTIONS,
    "max_chunk_bytes": CHUNK_BYTES,
    "max_retries": 0,
    "raise_on_error": False,
    "raise_on_exception": False,
}
"""Options of both libraries' bulk helpers: send each request once, and report every outcome."""

BUSY = 503
"""The status of an action if the index is blocked for everybody, as on a full disk: that is not the
fault of the document.
"""

JSON, LINES = "application/json", "application/x-ndjson"

_log = logging.getLogger(__name__)


class ClientLibrary(Protocol):
    """The used part of a client library: single requests and its bulk helper, each sent once."""

    engine: Engine

    def send(
        self, method: str, target: str, body: bytes | None, content_type: str, accept: str
    ) -> Any:
        """Return the decoded answer; True or False for HEAD.

        `content_type` is that of `body`, `accept` that of the answer.

        Raises:
            LibraryError: If the request failed.
        """
        ...

    def stream(
        self, actions: Iterator[dict[str, Any]]
    ) -> Iterator[tuple[dict[str, Any], LibraryError | None]]:
        """Yield for each action, in order, the server's item, or the failure of the whole request.

        Raises:
            LibraryError: If a request had no answer.
        """
        ...

    def close(self) -> None:
        """Close the sockets."""
        ...


class Connection:
    """A `Server` over one client library. Nothing is sent before the first request."""

    def __init__(self, library: ClientLibrary, address: Address, access: Access) -> None:
        self._library = library
        self._address = address
        self._access = access
        self._lock = threading.Lock()
        self._version: tuple[int, int, int] | None = None
        self.engine: Engine = library.engine

    @property
    def version(self) -> tuple[int, int, int]:
        """Return the version of the server, which is requested once.

        Raises ServerError if it is too old, or another engine than the URL names.
        """
        with self._lock:
            if self._version is None:
                self._version = self._check_supported(
                    *parse_hello(self._fetch_hello(), self._address)
                )
            return self._version

    def request(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Any:
        """See `Server.request`."""
        lines = options.get("lines")
        target = path + build_query_string(options.get("params", {}))
        content = (
            encode_json(options.get("body"))
            if lines is None
            else b"".join(encode_json(line) + b"\n" for line in lines)
        )
        content_type = JSON if lines is None else LINES
        accept = CBOR if options.get("binary") else JSON
        read = options.get("read", ANYTHING.read if method == "HEAD" else CONTAINER.read)

        def send_once() -> Any:
            try:
                return read(
                    self._library.send(method, target, content or None, content_type, accept)
                )
            except LibraryError as failure:
                raise translate_failure(
                    failure, self._address, self._access, f"{method} {path}"
                ) from failure.__cause__
            except (ShapeError, RecursionError) as error:
                raise build_shape_error(error, self._address, f"{method} {path}") from error

        return retry.attempt(send_once, options.get("policy"))

    def bulk(self, actions: Iterable[Body]) -> Iterator[Outcome]:
        """Yield the outcome of each action (see `Server.bulk`).

        Raises AccessError if the login is refused, because then nothing that follows would be
        accepted.
        """
        remaining = iter(actions)
        # the helper cannot go on after a lost connection: it is restarted with what was not sent
        for first in remaining:
            yield from self._stream_bulk(itertools.chain([first], remaining))

    def close(self) -> None:
        """See `Server.close`."""
        self._library.close()

    def __str__(self) -> str:
        return str(self._address)

    def __repr__(self) -> str:
        return f"Connection({str(self._address)!r}, {self._access.identity})"

    def _fetch_hello(self) -> Any:
        try:
            return self.request("GET", "/", read=ANYTHING.read)
        except ServerError as error:
            if error.status != 405:
                raise
            # a distribution for tests has no handler for "/"
            nodes = self.request("GET", "/_nodes/_local", read=NODES.read)["nodes"]
            return {"version": {"number": next(iter(nodes.values()))["version"]}}

    def _stream_bulk(self, actions: Iterator[Body]) -> Iterator[Outcome]:
        """Yield the outcomes of `actions` until all are sent or the connection is lost.

        Actions that were under way then have status 0.
        """
        pending: deque[dict[str, Any]] = deque()

        def feed() -> Iterator[dict[str, Any]]:
            for action in actions:
                pending.append(dict(action))
                yield pending[-1]

        reason_lost = "the server did not answer for it"
        try:
            for item, failure in self._library.stream(feed()):
                yield from _skipped_outcomes(pending, item, reason_lost)
                _check_sent(pending, item)
                yield self._build_outcome(pending.popleft(), item, failure)
        except (ShapeError, RecursionError) as shape_error:
            unusable = build_shape_error(shape_error, self._address, "POST /_bulk")
            raise unusable from shape_error
        except LibraryError as failure:
            reason_lost = str(self._translate_bulk_failure(failure))
        yield from (Outcome(action, 0, reason_lost) for action in pending)

    def _build_outcome(
        self, action: Body, item: Mapping[str, Any], failure: LibraryError | None
    ) -> Outcome:
        if failure is None:
            status = item.get("status", 500)
            return Outcome(
                action,
                BUSY if is_blocked(item) else status,
                reason(item) if "error" in item else "",
                kind=error_kind(item),
            )
        error = self._translate_bulk_failure(failure)
        return Outcome(
            action,
            BUSY if is_blocked(failure.data) else error.status,
            str(error),
            error.retry_after or 0.0,
            error_kind(failure.data),
        )

    def _translate_bulk_failure(self, failure: LibraryError) -> ServerError:
        """Return the error of a whole bulk request; raise it if the next would fare no better."""
        error = translate_failure(failure, self._address, self._access, "POST /_bulk")
        if isinstance(error, AccessError) or error.status == UNUSABLE:
            raise error from failure.__cause__
        return error

    def _check_supported(
        self, engine: Engine, version: tuple[int, int, int]
    ) -> tuple[int, int, int]:
        if engine != self.engine:
            raise ServerError(
                f"{self._address} is {engine} {format_version(version)}, but the URL says "
                f"{self.engine}: begin it with {engine}+"
            )
        if version < MINIMUM[engine]:
            raise ServerError(
                f"{self._address} is {engine} {format_version(version)}: "
                f"the oldest supported version is {format_version(MINIMUM[engine])}"
            )
        if engine == "opensearch" and version == (7, 10, 2):
            raise ServerError(
                f"{self._address} says it is 7.10.2: "
                "set compatibility.override_main_response_version to false"
            )
        return version


def iterate_bulk_items(
    answers: Iterable[tuple[bool, dict[str, Any]]], translate_failure: Callable[[Any], LibraryError]
) -> Iterator[tuple[dict[str, Any], LibraryError | None]]:
    """Yield what a bulk helper says of each action, as `ClientLibrary.stream` does.

    `translate_failure` translates the exception of a whole request.
    """
    for _, answer in answers:
        (item,) = answer.values()
        error = item.get("exception")
        yield item, translate_failure(error) if isinstance(error, Exception) else None


def parse_hello(hello: Any, address: Address) -> tuple[Engine, tuple[int, int, int]]:
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
    engine: Engine = (
        "opensearch" if version.get("distribution") == "opensearch" else "elasticsearch"
    )
    return engine, (int(number[1]), int(number[2]), int(number[3]))


def format_version(version: tuple[int, ...]) -> str:
    """Return a version as text, as in ``3.5.0``."""
    return ".".join(map(str, version))


def encode_json(body: Any) -> bytes:
    """Return compact JSON without NaN, which no server accepts; empty for None."""
    return (
        b""
        if body is None
        else json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    )


def build_query_string(params: Body) -> str:
    """Return the query part of a URL with its question mark, empty without parameters.

    Booleans are written as servers write them, lists with commas; None is left out.
    """
    values = {name: _format_value(value) for name, value in params.items() if value is not None}
    return f"?{urlencode(values, quote_via=quote)}" if values else ""


def create_ssl_context(access: Access) -> ssl.SSLContext:
    """Return a context that trusts the CA bundle and nothing else.

    Without a bundle it trusts the certificates of the system and of certifi.

    Raises:
        UsageError: If the bundle is not a file of certificates.
    """
    try:
        context = ssl.create_default_context(cafile=access.ca)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"HYBRID_SEARCH_CA names {str(access.ca)!r}, which is not a PEM file of "
            f"certificates: {error}"
        ) from error
    if access.ca is None:
        context.load_verify_locations(certifi.where())  # some machines have no others
    if not access.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


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


def _skipped_outcomes(
    pending: deque[dict[str, Any]], item: Mapping[str, Any], why: str
) -> Iterator[Outcome]:
    """Yield outcomes for the first of `pending` that a too short answer left out.

    `item` is about a later action.
    """
    if any(_is_about(action, item) for action in pending):
        while not _is_about(pending[0], item):
            yield Outcome(pending.popleft(), 0, why)


def _check_sent(pending: deque[dict[str, Any]], item: Mapping[str, Any]) -> None:
    if not (pending and _is_about(pending[0], item)):
        raise ShapeError(f"items: {item.get('_id')!r} is not the id of an action that was sent")


def _is_about(action: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    return action.get("_id") is None or str(action["_id"]) == item.get("_id")
