"""Elasticsearch through its client, version 8, which speaks to servers 8 and 9: the only place of that library."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from urllib3 import HTTPSConnectionPool

from hybrid_search.access import Access
from hybrid_search.backends.server.address import Address
from hybrid_search.backends.server.base import Engine
from hybrid_search.backends.server.cbor import CBOR, decoded
from hybrid_search.backends.server.connection import BULK, POOL, Connection, answered, trust
from hybrid_search.backends.server.failures import LibraryError, lost
from hybrid_search.errors import MissingExtraError, UsageError

try:
    from elastic_transport import ConnectionTimeout, HttpHeaders, NodeConfig, SerializationError, Serializer, TransportError, Urllib3HttpNode
    from elasticsearch import ApiError, Elasticsearch, UnsupportedProductError
    from elasticsearch.helpers import streaming_bulk
except ModuleNotFoundError as missing:
    raise MissingExtraError("Elasticsearch needs its client: pip install 'hybrid-search[elasticsearch]'") from missing

COMPATIBLE = "application/vnd.elasticsearch+cbor; compatible-with=8"
"""CBOR of version 8, which is what the library asks of newer servers too."""

_log = logging.getLogger(__name__)
logging.getLogger("elastic_transport.node_pool").setLevel(logging.ERROR)  # it counts dead nodes at warning level; here there is one, and `retry`


def connect(address: Address, access: Access) -> Connection:
    """A connection to the Elasticsearch at `address`. Nothing is sent before something is asked of it."""
    access = access.of(address.username)
    if access.aws_region is not None:
        raise UsageError("HYBRID_SEARCH_AWS_REGION is for Amazon OpenSearch Service: Elasticsearch takes a password, an API key or a token")
    return Connection(ElasticsearchLibrary(address, access), address, access)


class ElasticsearchLibrary:
    """elasticsearch-py as a `connection.Library`."""

    engine: Engine = "elasticsearch"

    def __init__(self, address: Address, access: Access) -> None:
        self._timeout = access.timeout
        header = access.authorization()
        secure: dict[str, Any] = {"ssl_context": trust(access), "verify_certs": access.verify, "ssl_show_warn": False} if address.secure else {}
        self._client = _Client(
            [{"host": address.host, "port": address.port, "scheme": address.scheme, "path_prefix": address.prefix}],
            node_class=_Node,
            headers={"authorization": header.reveal()} if header else {},
            request_timeout=access.timeout,
            connections_per_node=POOL,
            max_retries=0,
            retry_on_timeout=False,
            retry_on_status=(),
            serializers={"application/vnd.elasticsearch+cbor": _Cbor()},
            **secure,
        )

    def send(self, method: str, target: str, body: bytes | None, kind: str, accept: str) -> Any:
        """See `Library.send`."""
        try:
            answer = self._client.perform_request(
                method, target, headers={"accept": COMPATIBLE if accept == CBOR else accept, "content-type": kind}, body=body
            )
        except (ApiError, TransportError) as error:
            raise self._failure(error) from error
        if method == "HEAD":
            return bool(answer)
        if not isinstance(answer.body, (dict, list)):
            raise LibraryError(0, f"the answer is not what was asked for: {answer.body}")
        return answer.body

    def stream(self, actions: Iterator[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], LibraryError | None]]:
        """See `Library.stream`. The helper raises where the connection is lost."""
        try:
            yield from answered(streaming_bulk(self._client, actions, **BULK), self._failure)
        except TransportError as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """See `Library.close`."""
        self._client.close()

    def _failure(self, error: ApiError | TransportError) -> LibraryError:
        if isinstance(error, UnsupportedProductError):
            return LibraryError(error.meta.status, "this is not Elasticsearch: its answer has no header X-Elastic-Product")
        if isinstance(error, ApiError):
            return LibraryError(error.meta.status, error.body, error.meta.headers.get("retry-after"))
        if isinstance(error, SerializationError):
            return LibraryError(0, f"the answer is not what was asked for: {error.message}")
        return lost(error, self._timeout, isinstance(error, ConnectionTimeout))


class _Cbor(Serializer):
    """How the library reads answers in CBOR."""

    mimetype = "application/vnd.elasticsearch+cbor"

    def loads(self, data: bytes) -> Any:
        """The decoded answer."""
        try:
            return decoded(data)
        except ValueError as error:
            raise SerializationError(str(error)) from error


class _Client(Elasticsearch):
    """The library's client, whose bulk helper takes it for granted that an answer is one."""

    def bulk(self, *given: Any, **named: Any) -> Any:
        """As the library's. Raises SerializationError for what is no answer to a bulk request."""
        answer = super().bulk(*given, **named)
        if not isinstance(answer.body, dict) or not isinstance(answer.body.get("items"), list):
            raise SerializationError(f"no items: {answer.body}")
        return answer


class _Node(Urllib3HttpNode):
    """The library's node, which logs a server's warnings: as Python's warnings they would end programs that make errors of those."""

    def __init__(self, config: NodeConfig) -> None:
        super().__init__(config)
        if isinstance(self.pool, HTTPSConnectionPool):
            self.pool.ca_certs = None  # certifi's, which would be trusted beside the bundle that was asked for

    def perform_request(self, *given: Any, **named: Any) -> Any:
        """As the library's, without the header that its client would warn by."""
        answer = super().perform_request(*given, **named)
        warning = answer.meta.headers.get("warning")
        if warning is None:
            return answer
        _log.info("the server warns: %s", warning)
        kept = HttpHeaders({name: value for name, value in answer.meta.headers.items() if name.lower() != "warning"})
        return answer._replace(meta=replace(answer.meta, headers=kept))
