"""OpenSearch through opensearch-py: the only place of that library."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opensearchpy import ConnectionTimeout, OpenSearch, SerializationError, TransportError, Urllib3HttpConnection
from opensearchpy.helpers import streaming_bulk
from opensearchpy.serializer import Serializer
from urllib3 import disable_warnings
from urllib3.exceptions import InsecureRequestWarning

from hybrid_search.access import Access
from hybrid_search.backends.server import sigv4
from hybrid_search.backends.server.address import Address
from hybrid_search.backends.server.base import Engine
from hybrid_search.backends.server.cbor import CBOR, decoded
from hybrid_search.backends.server.connection import BULK, POOL, Connection, answered, trust
from hybrid_search.backends.server.failures import LibraryError, lost
from hybrid_search.errors import HybridSearchError

ANSWERED = range(100, 600)

_log = logging.getLogger(__name__)


def connect(address: Address, access: Access) -> Connection:
    """A connection to the OpenSearch at `address`. Nothing is sent before something is asked of it."""
    access = access.of(address.username)
    return Connection(OpenSearchLibrary(address, access), address, access)


class OpenSearchLibrary:
    """opensearch-py as a `connection.Library`."""

    engine: Engine = "opensearch"

    def __init__(self, address: Address, access: Access) -> None:
        self._timeout = access.timeout
        header = access.authorization()
        if not access.verify:
            disable_warnings(InsecureRequestWarning)  # one for each request; `connection.warn` has said it once
        self._client = _Client(
            [{"host": address.host, "port": address.port, "use_ssl": address.secure, "url_prefix": address.prefix}],
            connection_class=_Node,
            headers={"authorization": header.reveal()} if header else {},
            http_auth=_signer(access),
            ssl_context=trust(access) if address.secure else None,
            timeout=access.timeout,
            pool_maxsize=POOL,
            max_retries=0,
            retry_on_status=(),
            serializers={CBOR: _Cbor()},
        )

    def send(self, method: str, target: str, body: bytes | None, kind: str, accept: str) -> Any:
        """See `Library.send`."""
        try:
            answer = self._client.transport.perform_request(method, target, headers={"content-type": kind, "accept": accept}, body=body)
        except (TransportError, SerializationError) as error:
            raise self._failure(error) from error
        if isinstance(answer, str):
            raise LibraryError(0, f"the answer is not what was asked for: {answer}")
        return answer

    def stream(self, actions: Iterator[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], LibraryError | None]]:
        """See `Library.stream`. The helper itself makes a lost connection the failure of each action that was in the request."""
        try:
            yield from answered(streaming_bulk(self._client, actions, **BULK), self._failure)
        except SerializationError as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """See `Library.close`."""
        self._client.close()

    def _failure(self, error: TransportError | SerializationError) -> LibraryError:
        if isinstance(error, SerializationError):
            return LibraryError(0, f"the answer is not what was asked for: {error.args[0]}")
        if isinstance(error.status_code, int):
            return LibraryError(error.status_code, error.error if error.info is None else error.info, getattr(error, "retry_after", None))
        if isinstance(error.info, HybridSearchError):
            raise error.info  # of the signer, which the library calls
        return lost(error, self._timeout, isinstance(error, ConnectionTimeout))


class _Cbor(Serializer):
    """How the library reads answers in CBOR."""

    mimetype = CBOR

    def loads(self, s: Any) -> Any:
        """The decoded answer."""
        try:
            return decoded(s)
        except ValueError as error:
            raise SerializationError(str(error)) from error


class _Bytes(bytes):
    """An answer that is not text. The library decodes all answers before it looks at what they are."""

    def decode(self, *_: Any, **__: Any) -> Any:
        """Itself."""
        return self


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the library reads of an answer."""

    status: int
    headers: Any
    data: bytes


class _Client(OpenSearch):
    """The library's client, whose bulk helper takes it for granted that an answer is one."""

    def bulk(self, *given: Any, **named: Any) -> Any:
        """As the library's. Raises SerializationError for what is no answer to a bulk request."""
        answer = super().bulk(*given, **named)
        if not isinstance(answer, dict) or not isinstance(answer.get("items"), list):
            raise SerializationError(f"no items: {answer}")
        return answer


class _Node(Urllib3HttpConnection):
    """The library's connection, which keeps Retry-After with an error, and logs nothing at warning level that will be tried again."""

    def perform_request(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
        ignore: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """As the library's, by which all answers pass here as they came."""
        status, answered, data = super().perform_request(method, url, params, body, timeout, ANSWERED, headers)
        if 200 <= status < 300 or status in ignore:
            return status, answered, data
        try:
            return self._raise_error(status, *_legible(data, answered.get("content-type")))
        except TransportError as error:
            error.retry_after = answered.get("retry-after")  # type: ignore[attr-defined] # the library drops the headers of an error
            raise

    def _create_urllib3_pool(self) -> None:
        super()._create_urllib3_pool()
        ask = self.pool.urlopen

        def asked(*given: Any, **named: Any) -> Any:
            answer = ask(*given, **named)
            binary = str(answer.headers.get("content-type")).startswith(CBOR)
            return _Answer(answer.status, answer.headers, _Bytes(answer.data)) if binary else answer

        self.pool.urlopen = asked

    def log_request_fail(self, method: str, full_url: str, *_: Any, **__: Any) -> None:
        """What failed is logged once, by whoever tries again or gives up."""
        _log.debug("%s %s failed", method, full_url)

    def _raise_warnings(self, warning_headers: Any) -> None:
        for each in warning_headers or ():
            _log.info("the server warns: %s", each)


def _legible(data: Any, kind: str | None) -> tuple[Any, str | None]:
    """The body of an error and its content type; as JSON if it is CBOR, which the library leaves as it is."""
    if not isinstance(data, _Bytes):
        return data, kind
    try:
        return json.dumps(decoded(data), default=repr), "application/json"
    except ValueError:
        return repr(bytes(data)), None


def _signer(access: Access) -> sigv4.Signer | None:
    if access.aws_region is None:
        return None
    sigv4.check(access.aws_service)
    return sigv4.Signer(access.aws_region, access.aws_service)
