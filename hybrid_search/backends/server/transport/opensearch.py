"""OpenSearch through opensearch-py; no other module imports that library."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from opensearchpy import (
    ConnectionTimeout,
    OpenSearch,
    SerializationError,
    TransportError,
    Urllib3HttpConnection,
)
from opensearchpy.helpers import streaming_bulk
from opensearchpy.serializer import Serializer
from urllib3 import disable_warnings
from urllib3.exceptions import InsecureRequestWarning

from hybrid_search.backends.server.transport import sigv4
from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.answers import BULK_ANSWER
from hybrid_search.backends.server.transport.base import Engine
from hybrid_search.backends.server.transport.cbor import CBOR, decode_cbor
from hybrid_search.backends.server.transport.connection import (
    BULK,
    POOL,
    Connection,
    create_ssl_context,
    iterate_bulk_items,
)
from hybrid_search.backends.server.transport.errors import LibraryError, build_connection_error
from hybrid_search.backends.server.transport.limits import Limits, limit_answers
from hybrid_search.credentials import Access
from hybrid_search.errors import HybridSearchError

ANY_STATUS = range(100, 600)

_log = logging.getLogger(__name__)


def connect(address: Address, access: Access) -> Connection:
    """Return a connection to the OpenSearch at `address`.

    Nothing is sent before the first request.
    """
    access = access.with_username(address.username)
    return Connection(OpenSearchLibrary(address, access), address, access)


class OpenSearchLibrary:
    """The library opensearch-py as a `connection.ClientLibrary`."""

    engine: Engine = "opensearch"

    def __init__(self, address: Address, access: Access) -> None:
        self._timeout = access.timeout
        limits = Limits.from_access(access)
        header = access.authorization()
        if not access.verify:
            # one for each request; `connection.warn` has logged it once
            disable_warnings(InsecureRequestWarning)
        self._client = _Client(
            [
                {
                    "host": address.host,
                    "port": address.port,
                    "use_ssl": address.is_secure,
                    "url_prefix": address.prefix,
                }
            ],
            connection_class=partial(_Node, limits=limits),
            headers={"authorization": header.reveal()} if header else {},
            http_auth=_create_signer(access),
            ssl_context=create_ssl_context(access) if address.is_secure else None,
            timeout=access.timeout,
            pool_maxsize=POOL,
            max_retries=0,
            retry_on_status=(),
            serializers={CBOR: _Cbor()},
        )

    def send(
        self, method: str, target: str, body: bytes | None, content_type: str, accept: str
    ) -> Any:
        """See `ClientLibrary.send`."""
        try:
            answer = self._client.transport.perform_request(
                method, target, headers={"content-type": content_type, "accept": accept}, body=body
            )
        except (TransportError, SerializationError) as error:
            raise self._translate_failure(error) from error
        if isinstance(answer, str):
            raise LibraryError(0, f"the answer is not in the requested format: {answer}")
        return answer

    def stream(
        self, actions: Iterator[dict[str, Any]]
    ) -> Iterator[tuple[dict[str, Any], LibraryError | None]]:
        """Yield items as `ClientLibrary.stream` does.

        The helper itself makes a lost connection the failure of every action in the request.
        """
        try:
            yield from iterate_bulk_items(
                streaming_bulk(self._client, actions, **BULK), self._translate_failure
            )
        except SerializationError as error:
            raise self._translate_failure(error) from error

    def close(self) -> None:
        """See `ClientLibrary.close`."""
        self._client.close()

    def _translate_failure(self, error: TransportError | SerializationError) -> LibraryError:
        if isinstance(error, SerializationError):
            return LibraryError(0, f"the answer is not in the requested format: {error.args[0]}")
        if isinstance(error.status_code, int):
            return LibraryError(
                error.status_code,
                error.error if error.info is None else error.info,
                getattr(error, "retry_after", None),
            )
        if isinstance(error.info, HybridSearchError):
            raise error.info  # from the signer, which the library calls
        return build_connection_error(error, self._timeout, isinstance(error, ConnectionTimeout))


class _Cbor(Serializer):
    """Reads answers in CBOR for the library."""

    mimetype = CBOR

    def loads(self, s: Any) -> Any:
        """Return the decoded answer."""
        try:
            return decode_cbor(s)
        except ValueError as error:
            raise SerializationError(str(error)) from error


class _Bytes(bytes):
    """An answer that is not text.

    The library decodes all answers before it looks at their type.
    """

    def decode(self, *_: Any, **__: Any) -> Any:
        """Return the bytes themselves."""
        return self


class _Client(OpenSearch):
    """The library's client; its bulk helper does not check that an answer is usable."""

    def bulk(self, *args: Any, **kwargs: Any) -> Any:
        """Return the answer to a bulk request, which must have items.

        Raises:
            SerializationError: If it is not JSON.
        """
        answer = super().bulk(*args, **kwargs)
        if isinstance(answer, str):
            raise SerializationError(answer)
        return BULK_ANSWER.read(answer)


class _RefusalError(TransportError):
    """An error with its Retry-After.

    The text of the library's own errors fails if the server's error has another form than usual.
    """

    @property
    def retry_after(self) -> str | None:
        """The header of the answer."""
        value: str | None = self.args[3]
        return value

    def __str__(self) -> str:
        return f"status {self.status_code}"


class _Node(Urllib3HttpConnection):
    """The library's connection; an error keeps its Retry-After.

    It logs nothing at warning level that will be tried again.
    """

    def __init__(self, *args: Any, limits: Limits, **options: Any) -> None:
        self._limits = limits
        super().__init__(*args, **options)

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
        """Return the answer as it came.

        Raises:
            _RefusalError: If its status is that of an error.
        """
        status, response_headers, data = super().perform_request(
            method, url, params, body, timeout, ANY_STATUS, headers
        )
        if 200 <= status < 300 or status in ignore:
            return status, response_headers, data
        # the library itself drops the headers of an error, and reads no other bodies than objects
        body = _decode_error_body(data, str(response_headers.get("content-type")))
        raise _RefusalError(status, data, body, response_headers.get("retry-after"))

    def _create_urllib3_pool(self) -> None:
        super()._create_urllib3_pool()
        limit_answers(self.pool, self._limits)
        urlopen = self.pool.urlopen

        def open_url(*args: Any, **kwargs: Any) -> Any:
            answer = urlopen(*args, **kwargs)
            binary = str(answer.headers.get("content-type")).startswith(CBOR)
            return replace(answer, data=_Bytes(answer.data)) if binary else answer

        self.pool.urlopen = open_url

    def log_request_fail(self, method: str, full_url: str, *_: Any, **__: Any) -> None:
        """Log a failure for debugging; `retry` logs it for users."""
        _log.debug("%s %s failed", method, full_url)

    def _raise_warnings(self, warning_headers: Any) -> None:
        for warning in warning_headers or ():
            _log.info("the server warns: %s", warning)


def _decode_error_body(data: Any, content_type: str) -> Any:
    """Return the body of an error, as its text if it is not what its type says."""
    try:
        if isinstance(data, _Bytes):
            return decode_cbor(data)
        return json.loads(data) if content_type.startswith("application/json") else data
    except (ValueError, RecursionError):
        return repr(bytes(data)) if isinstance(data, _Bytes) else data


def _create_signer(access: Access) -> sigv4.Signer | None:
    if access.aws_region is None:
        return None
    sigv4.check_service(access.aws_service)
    return sigv4.Signer(access.aws_region, access.aws_service)
