"""Elasticsearch through its client, version 8, which works with servers 8 and 9.

No other module imports that library.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from urllib3 import HTTPSConnectionPool

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
from hybrid_search.errors import MissingExtraError, UsageError
from hybrid_search.system import install_command

try:
    from elastic_transport import (
        ConnectionTimeout,
        HttpHeaders,
        NodeConfig,
        SerializationError,
        Serializer,
        TransportError,
        Urllib3HttpNode,
    )
    from elasticsearch import ApiError, Elasticsearch, UnsupportedProductError
    from elasticsearch.helpers import streaming_bulk
except ModuleNotFoundError as import_error:
    raise MissingExtraError(
        f"Elasticsearch needs its client: {install_command('elasticsearch')}"
    ) from import_error

COMPATIBLE = "application/vnd.elasticsearch+cbor; compatible-with=8"
"""CBOR of version 8, which the library requests from newer servers too."""

NOT_ELASTICSEARCH = "this is not Elasticsearch: its answer has no header X-Elastic-Product"

_log = logging.getLogger(__name__)
# it counts dead nodes at warning level; here there is one node, and `retry`
logging.getLogger("elastic_transport.node_pool").setLevel(logging.ERROR)


def connect(address: Address, access: Access) -> Connection:
    """Return a connection to the Elasticsearch at `address`.

    Nothing is sent before the first request.

    Raises:
        UsageError: If signing requests for AWS is configured.
    """
    access = access.with_username(address.username)
    if access.aws_region is not None:
        raise UsageError(
            "HYBRID_SEARCH_AWS_REGION is for Amazon OpenSearch Service: "
            "Elasticsearch takes a password, an API key or a token"
        )
    return Connection(ElasticsearchLibrary(address, access), address, access)


class ElasticsearchLibrary:
    """The library elasticsearch-py as a `connection.ClientLibrary`."""

    engine: Engine = "elasticsearch"

    def __init__(self, address: Address, access: Access) -> None:
        self._timeout = access.timeout
        limits = Limits.from_access(access)
        header = access.authorization()
        tls_options: dict[str, Any] = (
            {
                "ssl_context": create_ssl_context(access),
                "verify_certs": access.verify,
                "ssl_show_warn": False,
            }
            if address.is_secure
            else {}
        )
        self._client = _Client(
            [
                {
                    "host": address.host,
                    "port": address.port,
                    "scheme": address.scheme,
                    "path_prefix": address.prefix,
                }
            ],
            node_class=_limit_node(limits),
            headers={"authorization": header.reveal()} if header else {},
            request_timeout=access.timeout,
            connections_per_node=POOL,
            max_retries=0,
            retry_on_timeout=False,
            retry_on_status=(),
            serializers={"application/vnd.elasticsearch+cbor": _Cbor()},
            **tls_options,
        )

    def send(
        self, method: str, target: str, body: bytes | None, content_type: str, accept: str
    ) -> Any:
        """See `ClientLibrary.send`."""
        try:
            answer = self._client.perform_request(
                method,
                target,
                headers={
                    "accept": COMPATIBLE if accept == CBOR else accept,
                    "content-type": content_type,
                },
                body=body,
            )
        except (ApiError, TransportError) as error:
            raise self._translate_failure(error) from error
        if method == "HEAD":
            return bool(answer)
        if isinstance(answer.body, str):
            raise LibraryError(0, f"the answer is not in the requested format: {answer.body}")
        return answer.body

    def stream(
        self, actions: Iterator[dict[str, Any]]
    ) -> Iterator[tuple[dict[str, Any], LibraryError | None]]:
        """See `ClientLibrary.stream`. The helper raises if the connection is lost."""
        try:
            yield from iterate_bulk_items(
                streaming_bulk(self._client, actions, **BULK), self._translate_failure
            )
        except TransportError as error:
            raise self._translate_failure(error) from error

    def close(self) -> None:
        """See `ClientLibrary.close`."""
        self._client.close()

    def _translate_failure(self, error: ApiError | TransportError) -> LibraryError:
        if isinstance(error, UnsupportedProductError):
            return LibraryError(error.meta.status, NOT_ELASTICSEARCH)
        if isinstance(error, ApiError):
            return LibraryError(
                error.meta.status, error.body, error.meta.headers.get("retry-after")
            )
        if isinstance(error, SerializationError):
            return LibraryError(0, f"the answer is not in the requested format: {error.message}")
        return build_connection_error(error, self._timeout, isinstance(error, ConnectionTimeout))


class _Cbor(Serializer):
    """Reads answers in CBOR for the library."""

    mimetype = "application/vnd.elasticsearch+cbor"

    def loads(self, data: bytes) -> Any:
        """Return the decoded answer."""
        try:
            return decode_cbor(data)
        except ValueError as error:
            raise SerializationError(str(error)) from error


class _RefusalError(ApiError):
    """An error to a bulk request, whose text the library's helper reads.

    That of the library's own errors fails if the server's error has another form than usual.
    """

    def __str__(self) -> str:
        return f"status {self.status_code}"


class _Client(Elasticsearch):
    """The library's client; its bulk helper does not check that an answer is usable."""

    def bulk(self, *args: Any, **kwargs: Any) -> Any:
        """Return the answer to a bulk request, which must have items.

        Raises:
            _RefusalError: If the server answers with an error.
            TransportError: If it is not Elasticsearch.
            SerializationError: If the answer is not JSON.
        """
        try:
            answer = super().bulk(*args, **kwargs)
        except UnsupportedProductError as error:
            raise TransportError(NOT_ELASTICSEARCH) from error
        except ApiError as error:
            raise _RefusalError(error.message, error.meta, error.body) from error
        if isinstance(answer.body, str):
            raise SerializationError(answer.body)
        BULK_ANSWER.read(answer.body)
        return answer


class _Node(Urllib3HttpNode):
    """The library's node, with a server's warnings in the log.

    As warnings of Python they would end programs that turn those into errors.
    """

    limits: Limits

    def __init__(self, config: NodeConfig) -> None:
        super().__init__(config)
        limit_answers(self.pool, self.limits)
        if isinstance(self.pool, HTTPSConnectionPool):
            # by default certifi's, which would be trusted beside the user's own bundle
            self.pool.ca_certs = None

    def perform_request(self, *args: Any, **kwargs: Any) -> Any:
        """Return the answer without the header from which the client makes its warnings."""
        answer = super().perform_request(*args, **kwargs)
        warning = answer.meta.headers.get("warning")
        if warning is None:
            return answer
        _log.info("the server warns: %s", warning)
        headers = HttpHeaders(
            {
                name: value
                for name, value in answer.meta.headers.items()
                if name.lower() != "warning"
            }
        )
        return answer._replace(meta=replace(answer.meta, headers=headers))


def _limit_node(limits: Limits) -> type[_Node]:
    """Return the class of nodes with these limits; the library creates them itself."""
    return type("_LimitedNode", (_Node,), {"limits": limits})
