"""A connection to one cluster: it tries again, translates errors, and reads the version once."""

from __future__ import annotations

import logging
import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Unpack
from urllib.parse import quote, urlencode

from hybrid_search.backends.server.dialects import find_dialect, recognise
from hybrid_search.backends.server.dialects.base import Version, format_version
from hybrid_search.backends.server.transport import retry
from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.base import Body, Outcome, RequestOptions
from hybrid_search.backends.server.transport.client import (
    CBOR,
    JSON,
    LINES,
    Client,
    encode_action,
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

CHUNK_ACTIONS = 500
CHUNK_BYTES = 8 * 1024 * 1024
"""The largest bulk request. Small instances of managed services accept 10 MB and no more."""

BUSY = 503
"""The status of an action if the index is blocked for everybody, as on a full disk: that is not the
fault of the document.
"""

LEFT_OUT = "the server did not answer for it"

_log = logging.getLogger(__name__)


def connect(address: Address, access: Access) -> Connection:
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
    return Connection(address, access)


class Connection:
    """A `Server`. It is asked for its engine if the address does not name that."""

    def __init__(self, address: Address, access: Access) -> None:
        self._client = Client(address, access)
        self._address = address
        self._access = access
        self._lock = threading.Lock()
        self._identity: tuple[str, Version] | None = None

    @property
    def engine(self) -> str:
        """Return the name of the engine; asks the server, once, if the address has none."""
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

    def request(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Any:
        """See `Server.request`."""
        if self._address.engine is None:
            self._identify(options.get("policy"))
        return self._request(method, path, **options)

    def bulk(self, actions: Iterable[Body]) -> Iterator[Outcome]:
        """Yield the outcome of each action (see `Server.bulk`).

        Raises AccessError if the login is refused, because then nothing that follows would be
        accepted.
        """
        for chunk in _split_actions(actions):
            yield from self._send_chunk(chunk)

    def close(self) -> None:
        """See `Server.close`."""
        self._client.close()

    def __str__(self) -> str:
        return str(self._address)

    def __repr__(self) -> str:
        return f"Connection({str(self._address)!r}, {self._access.identity})"

    def _identify(self, policy: retry.RetryPolicy | None = None) -> tuple[str, Version]:
        """Return engine and version of the server, which is asked once."""
        with self._lock:
            if self._identity is None:
                hello = self._request("GET", "/", policy=policy, read=ANYTHING.read)
                self._identity = parse_hello(hello, self._address)
            return self._identity

    def _request(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Any:
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
                    self._client.send(method, target, content or None, content_type, accept)
                )
            except RequestError as failure:
                raise self._translate(failure, f"{method} {path}") from failure
            except (ShapeError, RecursionError) as error:
                raise build_shape_error(error, self._address, f"{method} {path}") from error

        return retry.attempt(send_once, options.get("policy"))

    def _send_chunk(self, chunk: list[tuple[Body, bytes]]) -> Iterator[Outcome]:
        """Yield the outcomes of the actions of one request."""
        actions = [action for action, _ in chunk]
        content = b"".join(lines for _, lines in chunk)
        try:
            items = read_items(self._client.send("POST", "/_bulk", content, LINES, JSON))
            for action, item in _pair_items(actions, items):
                yield _build_outcome(action, item)
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


def _split_actions(actions: Iterable[Body]) -> Iterator[list[tuple[Body, bytes]]]:
    """Yield the actions of one request after the other, each with what is sent for it."""
    chunk: list[tuple[Body, bytes]] = []
    size = 0
    for action in actions:
        lines = encode_action(action)
        if chunk and (len(chunk) == CHUNK_ACTIONS or size + len(lines) > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append((action, lines))
        size += len(lines)
    if chunk:
        yield chunk


def _pair_items(
    actions: Iterable[Body], items: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[Body, Mapping[str, Any] | None]]:
    """Yield each action with the item that is about it, None if the answer leaves it out."""
    pending = deque(actions)
    for item in items:
        while pending and not _is_about(pending[0], item):
            yield pending.popleft(), None
        if not pending:
            raise ShapeError(f"items: {item.get('_id')!r} is not the id of an action that was sent")
        yield pending.popleft(), item
    yield from ((action, None) for action in pending)


def _is_about(action: Body, item: Mapping[str, Any]) -> bool:
    return action.get("_id") is None or str(action["_id"]) == item.get("_id")


def _build_outcome(action: Body, item: Mapping[str, Any] | None) -> Outcome:
    if item is None:
        return Outcome(action, 0, LEFT_OUT)
    status = BUSY if is_blocked(item) else item.get("status", 500)
    return Outcome(action, status, reason(item) if "error" in item else "", kind=error_kind(item))
