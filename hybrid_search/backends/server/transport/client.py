"""Sends requests over opensearch-py, to both engines; no other module imports that library."""

from __future__ import annotations

import json
import logging
import ssl
from collections.abc import Collection, Iterator, Mapping
from time import monotonic
from typing import Any

import cbor2
import certifi
from opensearchpy import Connection, SerializationError, Transport
from opensearchpy.serializer import Serializer
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, disable_warnings
from urllib3.exceptions import HTTPError, InsecureRequestWarning, InvalidHeader, ReadTimeoutError
from urllib3.util import Retry

from hybrid_search.backends.server.transport import sigv4
from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.errors import UNUSABLE, RequestError
from hybrid_search.credentials import MEGABYTE, Access
from hybrid_search.errors import UsageError
from hybrid_search.observability.traffic import note_answer

JSON, LINES, CBOR = "application/json", "application/x-ndjson", "application/cbor"
"""Formats; 500 passages with codes arrive in CBOR (RFC 8949) a fifth sooner than in JSON."""

POOL = 32
"""Sockets that are kept open. More threads than that open one briefly."""

READ_BYTES = 256 * 1024
"""Bytes that are read, or unpacked from a compressed answer, at once."""

_log = logging.getLogger(__name__)

_NOT_CBOR = (cbor2.CBORDecodeError, ArithmeticError, LookupError, MemoryError, TypeError)
"""What its library raises: tagged values are made by classes that refuse them in many ways."""


class Client:
    """Sends single requests to one server, each once. Safe to use from several threads."""

    def __init__(self, address: Address, access: Access) -> None:
        if not access.verify:
            # one for each request; `connection.warn` has logged it once
            disable_warnings(InsecureRequestWarning)
        login = access.authorization()
        ssl_context = _create_ssl_context(access) if address.is_secure else None
        self._transport = Transport(
            [{"host": address.host, "port": address.port, "use_ssl": address.is_secure}],
            connection_class=_Node,
            url_prefix=address.prefix,
            headers={"authorization": login.reveal()} if login else {},
            seconds=access.timeout,
            most_bytes=int(access.answer_megabytes * MEGABYTE),
            ssl_context=ssl_context,
            sign=sigv4.create_signer(access),
            max_retries=0,
            retry_on_status=(),
            serializers={CBOR: _Cbor()},
        )

    def send(
        self, method: str, target: str, body: bytes | None, content_type: str, accept: str
    ) -> Any:
        """Return the decoded answer in the format `accept`; True or False for HEAD.

        Raises:
            RequestError: If the request failed.
        """
        try:
            answer = self._transport.perform_request(
                method,
                target,
                headers={"content-type": content_type, "accept": accept},
                body=body,
                ignore=(404,) if method == "HEAD" else (),
            )
        except SerializationError as error:
            raise RequestError(0, _explain_format(error.args[0])) from error
        if isinstance(answer, bytes):
            raise RequestError(0, _explain_format(answer))
        return answer

    def close(self) -> None:
        """Close the sockets; the next request opens others."""
        self._transport.close()


class _Node(Connection):
    """The library's connection to a server, which takes answers up to a limit of their size."""

    def __init__(
        self,
        *,
        seconds: float,
        most_bytes: int,
        sign: sigv4.Signer | None,
        ssl_context: ssl.SSLContext | None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._seconds, self._most_bytes = seconds, most_bytes
        self._sign, self._ssl_context = sign, ssl_context
        self._pool = self._create_pool()

    def _create_pool(self) -> HTTPConnectionPool:
        host, port, context = self.hostname, self.port, self._ssl_context
        if context is None:
            return HTTPConnectionPool(host, port, maxsize=POOL)
        return HTTPSConnectionPool(host, port, maxsize=POOL, ssl_context=context)

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
        """Return status, headers and body of the answer; `url` has the parameters.

        Raises:
            RequestError: If the status is that of an error, or no answer came within the limits.
        """
        del params, timeout
        target, all_headers = self.url_prefix + url, {**self.headers, **(headers or {})}
        if self._sign is not None:
            all_headers |= self._sign(method, self.host + target, body)
        try:
            status, answer_headers, data = self._exchange(method, target, body, all_headers)
        except (HTTPError, OSError, ValueError) as error:
            failure = _build_error(error, self._seconds)
            raise failure from error
        for text in answer_headers.get_all("warning", ()):
            _log.info("the server warns: %s", text)  # for Python's warnings programs may end
        if 200 <= status < 300 or status in ignore:
            return status, answer_headers, data
        reason = _decode_error(data, str(answer_headers.get("content-type")))
        retry_after = parse_retry_after(answer_headers.get("retry-after"))
        raise RequestError(status, reason, retry_after)

    def _exchange(
        self, method: str, target: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, Any, bytes]:
        """Return status, headers and body of the answer to a request."""
        answer: Any = self._pool.urlopen(
            method,
            target,
            body,
            headers,
            retries=False,
            redirect=False,
            timeout=self._seconds,
            preload_content=False,
        )
        try:
            data = self._read(answer)
        except BaseException:
            answer.close()
            raise
        finally:
            answer.release_conn()
        return answer.status, answer.headers, data

    def _read(self, answer: Any) -> bytes:
        """Return the body of an answer, unpacked; raise RequestError if it is too large or late."""
        too_large = f"more than {self._most_bytes / MEGABYTE:g} MB"
        if (answer.length_remaining or 0) > self._most_bytes:
            raise RequestError(UNUSABLE, too_large)
        deadline = monotonic() + self._seconds
        parts, size, is_late = [], 0, False
        for part in answer.stream(READ_BYTES):
            if is_late:  # and the part before was not the last one
                limit = f"{self._seconds:g} s (HYBRID_SEARCH_TIMEOUT)"
                raise RequestError(0, f"the answer was not complete after {limit}")
            parts.append(part)
            size += len(part)
            if size > self._most_bytes:
                break
            is_late = monotonic() > deadline
        note_answer(size)
        if size > self._most_bytes:
            raise RequestError(UNUSABLE, too_large)
        return b"".join(parts)

    def close(self) -> None:
        """Close the sockets; the next request opens others."""
        self._pool.close()
        self._pool = self._create_pool()


class _Cbor(Serializer):
    """Reads answers in CBOR for the library."""

    mimetype = CBOR

    def loads(self, s: Any) -> Any:
        """Return the decoded answer."""
        try:
            return _decode_cbor(s)
        except ValueError as error:
            raise SerializationError(str(error)) from error


def encode_json(body: Any) -> bytes:
    """Return compact JSON without NaN, which no server accepts."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def parse_retry_after(retry_after: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, None if it is not valid."""
    try:
        return float(Retry().parse_retry_after(retry_after)) if retry_after else None
    except (InvalidHeader, ValueError, OverflowError):
        return None


def _decode_cbor(data: bytes) -> Any:
    """Return what an answer holds; raise ValueError if it is not CBOR."""
    try:
        return cbor2.loads(data)
    except _NOT_CBOR as error:
        raise ValueError(f"not valid CBOR: {error}") from error


def _decode_error(data: bytes, content_type: str) -> Any:
    """Return the body of an error, as its text if it is not what its type says."""
    try:
        if content_type.startswith(CBOR):
            return _decode_cbor(data)
        if content_type.startswith(JSON):
            return json.loads(data)
    except (ValueError, RecursionError):
        pass
    return data.decode(errors="replace")


def _explain_format(answer: Any) -> str:
    text = answer.decode(errors="replace") if isinstance(answer, bytes) else answer
    return f"the answer is not in the requested format: {text}"


def _build_error(error: Exception, timeout: float) -> RequestError:
    """Return the failure of a connection that broke, or was silent for `timeout` seconds."""
    causes = list(_iterate_causes(error))
    why = getattr(causes[-1], "strerror", None) or str(causes[-1])
    if isinstance(error, ReadTimeoutError) or isinstance(causes[-1], TimeoutError):
        why = f"it was silent for {timeout:g} s (HYBRID_SEARCH_TIMEOUT)"
    is_untrusted = any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes)
    return RequestError(0, why, is_untrusted=is_untrusted)


def _iterate_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield `error` and what caused it: libraries wrap that, or have it among the arguments."""
    while error is not None:
        yield error
        inner = [argument for argument in error.args if isinstance(argument, BaseException)]
        error = inner[0] if inner else error.__cause__


def _create_ssl_context(access: Access) -> ssl.SSLContext:
    """Return a context that trusts the CA bundle; without one what the system and certifi trust."""
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
