"""Sends requests over urllib3, to both engines; no other module imports that library."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from time import monotonic
from typing import Any

import cbor2
import certifi
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
"""The formats of requests and answers.

500 passages with their token codes arrive in CBOR (RFC 8949) a fifth sooner than in JSON, whose
strings have to be searched for quotes on both sides.
"""

POOL = 32
"""Sockets that are kept open. More threads than that open one briefly."""

READ_BYTES = 256 * 1024
"""Bytes that are read, or unpacked from a compressed answer, at once."""

_NOT_CBOR = (cbor2.CBORDecodeError, ArithmeticError, LookupError, MemoryError, TypeError)
"""What its library raises: tagged values are made by the classes of their types, which refuse them
in many ways.
"""


class Client:
    """Sends single requests to one server, each once. Safe to use from several threads.

    Nothing is sent before the first request.

    Raises:
        UsageError: If the CA bundle is not a file of certificates.
    """

    def __init__(self, address: Address, access: Access) -> None:
        self._address, self._seconds = address, access.timeout
        self._most_bytes = int(access.answer_megabytes * MEGABYTE)
        login = access.authorization()
        self._login = {"authorization": login.reveal()} if login else {}
        self._sign = sigv4.create_signer(access)
        self._ssl_context = _create_ssl_context(access) if address.is_secure else None
        if not access.verify:
            # one for each request; `connection.warn` has logged it once
            disable_warnings(InsecureRequestWarning)
        self._pool = self._create_pool()

    def _create_pool(self) -> HTTPConnectionPool:
        host, port, context = self._address.host, self._address.port, self._ssl_context
        if context is None:
            return HTTPConnectionPool(host, port, maxsize=POOL)
        return HTTPSConnectionPool(host, port, maxsize=POOL, ssl_context=context)

    def send(
        self, method: str, target: str, body: bytes | None, content_type: str, accept: str
    ) -> Any:
        """Return the decoded answer; True or False for HEAD.

        `content_type` is that of `body`, `accept` that of the answer.

        Raises:
            RequestError: If the request failed.
        """
        target = self._address.prefix + target
        headers = {**self._login, "content-type": content_type, "accept": accept}
        if self._sign is not None:
            headers |= self._sign(method, f"{self._address.origin}{target}", body)
        try:
            status, answer_headers, data = self._exchange(method, target, body, headers)
        except (HTTPError, OSError, ValueError) as error:
            failure = _build_error(error, self._seconds)
            raise failure from error
        is_success = 200 <= status < 300
        if method == "HEAD" and (is_success or status == 404):
            return is_success
        data_type = str(answer_headers.get("content-type", "")).partition(";")[0]
        if not is_success:
            reason, retry_after = _decode_error(data, data_type), answer_headers.get("retry-after")
            raise RequestError(status, reason, parse_retry_after(retry_after))
        try:
            return _decode(data, data_type)
        except ValueError as error:
            why = f"the answer is not in the requested format: {error}"
            raise RequestError(0, why) from error

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
        """Return the body of an answer, unpacked if it is compressed.

        Raises:
            RequestError: If it has more bytes than are taken, or says so, or is still coming when
                the time of a request is over.
        """
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


def encode_json(body: Any) -> bytes:
    """Return compact JSON without NaN, which no server accepts; empty for None."""
    return (
        b""
        if body is None
        else json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    )


def parse_retry_after(retry_after: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, None if it is not valid.

    It holds a number of seconds, or a date.
    """
    try:
        return float(Retry().parse_retry_after(retry_after)) if retry_after else None
    except (InvalidHeader, ValueError, OverflowError):
        return None


def _decode(data: bytes, data_type: str) -> Any:
    """Return what an answer holds; raise ValueError if it is not what its type says."""
    if data_type == CBOR:
        try:
            return cbor2.loads(data)
        except _NOT_CBOR as error:
            raise ValueError(f"not valid CBOR: {error}") from error
    text = data.decode(errors="replace")
    if data_type not in (JSON, ""):
        raise ValueError(text)
    try:
        return json.loads(data)
    except ValueError as error:
        raise ValueError(text) from error


def _decode_error(data: bytes, data_type: str) -> Any:
    """Return the body of an error, as its text if it is not what its type says."""
    try:
        return _decode(data, data_type)
    except (ValueError, RecursionError):
        return data.decode(errors="replace")


def _build_error(error: Exception, timeout: float) -> RequestError:
    """Return the failure of a connection that broke, or was silent for `timeout` seconds."""
    causes = list(_iterate_causes(error))
    why = getattr(causes[-1], "strerror", None) or str(causes[-1])
    if isinstance(error, ReadTimeoutError) or isinstance(causes[-1], TimeoutError):
        why = f"it was silent for {timeout:g} s (HYBRID_SEARCH_TIMEOUT)"
    is_untrusted = any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes)
    return RequestError(0, why, is_untrusted=is_untrusted)


def _iterate_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield `error` and what caused it, outermost first.

    The libraries wrap an exception as a cause, or among the arguments. An exception that was merely
    being handled when they were called has nothing to do with it.
    """
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
