"""The catalogue of bad answers: what a server, a proxy or a stranger on the port may send.

Each kind takes the request and the right reply to it, and returns the bad one. `ANYWHERE` are bad
as the answer to any request, `HARMLESS` are odd and may be understood. Those that are right but for
one field are in `wrong_fields`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from benchmarks.faults import wrong_fields
from benchmarks.faults.cluster import BadAnswer, RawReply
from benchmarks.faults.wrong_fields import ESCAPES
from tests.helpers.fake_server import HttpRequest, Reply

JSON = {"content-type": "application/json"}
MEGABYTE = 2**20
ENDLESS_MEGABYTES = 512


def _body(data: Any, status: int = 200, **headers: str) -> BadAnswer:
    """Return the kind that sends this body."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _request, _reply: Reply(status, data, JSON | names)


def _error(status: int, reason: str = "something is wrong", **headers: str) -> BadAnswer:
    error = {"type": "some_exception", "reason": reason, "root_cause": [{"reason": reason}]}
    return _body({"error": error, "status": status}, status, **headers)


def _raw(*pieces: bytes, pause: float = 0.0) -> BadAnswer:
    return lambda _request, _reply: RawReply(pieces, pause)


def _encode(reply: Reply) -> bytes:
    return reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()


def _head(length: object, *lines: str) -> bytes:
    fixed = ("HTTP/1.1 200 OK", "content-type: application/json",
             "x-elastic-product: Elasticsearch", f"content-length: {length}")  # fmt: skip
    return "\r\n".join([*fixed, *lines, "", ""]).encode()


def _chunked_head() -> bytes:
    return _head(0).replace(b"content-length: 0", b"transfer-encoding: chunked")


def _drip(_: HttpRequest, reply: Reply) -> RawReply:
    """Send a byte every tenth of a second, which never times out if each read is timed."""
    body = _encode(reply)
    return RawReply([_head(len(body)), *(bytes([byte]) for byte in body)], 0.1)


def _send_half(_: HttpRequest, reply: Reply) -> RawReply:
    body = _encode(reply)
    return RawReply([_head(len(body)), body[: len(body) // 2]])


def _send_half_as_whole(_: HttpRequest, reply: Reply) -> Reply:
    body = _encode(reply)
    return Reply(reply.status, body[: len(body) // 2])


def _stream_zeros() -> Iterator[bytes]:
    yield _head(ENDLESS_MEGABYTES * MEGABYTE)
    for _ in range(ENDLESS_MEGABYTES):
        yield bytes(MEGABYTE)


@cache
def _compress_bomb() -> bytes:
    """Return half a gigabyte of blanks, compressed to half a megabyte."""
    return gzip.compress(b" " * (64 * MEGABYTE)) * (ENDLESS_MEGABYTES // 64)


def _compress_right(_: HttpRequest, reply: Reply) -> Reply:
    return Reply(reply.status, gzip.compress(_encode(reply)), {"content-encoding": "gzip"})


def _mark_order(_: HttpRequest, reply: Reply) -> Reply:
    return Reply(reply.status, b"\xef\xbb\xbf" + _encode(reply))


def _append(data: bytes) -> BadAnswer:
    return lambda _, reply: Reply(reply.status, _encode(reply) + data)


def _keep_body(status: int = 200, wait: float = 0.0, **headers: str) -> BadAnswer:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _, reply: Reply(status, reply.body, names, wait)


ANYWHERE: dict[str, BadAnswer] = {
    # JSON of another shape
    "a list": _body([]),
    "a list of null": _body([None]),
    "null": _body(None),
    "a number": _body(5),
    "a text": _body("ok"),
    "true": _body(True),
    "an empty object": _body({}),
    "an object of null": _body({"hits": None, "responses": None, "items": None}),
    "deeply nested lists": _body(b"[" * 100_000 + b"]" * 100_000),
    "deeply nested objects": _body(b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    "an enormous number": _body(b"1" * 10_000),
    "NaN": _body(b'{"hits": NaN}'),
    "an error with status 200": _body({"error": "no", "status": 500}),
    "an error that is null": _body({"error": None}, 500),
    "an error that is a list": _body({"error": [["x"]]}, 500),
    "an error with odd causes": _body({"error": {"root_cause": 5, "caused_by": [1]}}, 500),
    # no JSON
    "nothing": _body(b""),
    "blanks": _body(b"   "),
    "half of the JSON": _send_half_as_whole,
    "a page": _body(b"<html><h1>It works</h1></html>", content_type="text/html"),
    "a page that says it is JSON": _body(b"<html></html>"),
    "zeros": _body(bytes(4096)),
    "not UTF-8": _body(b'{"version": "\xff\xfe"}'),
    "UTF-16": _body('{"version": {}}'.encode("utf-16")),
    "CBOR that is cut off": _body(b"\xbf\x64hits\xbf", content_type="application/cbor"),
    "CBOR of something else": _body(b"\x83\x01\x02\x03", content_type="application/cbor"),
    "CBOR with an enormous length": _body(
        b"\x9b\x7f\xff\xff\xff\xff\xff\xff\xff", content_type="application/cbor"
    ),
    "SMILE": _body(b":)\n\x05\xfa\xfb", content_type="application/smile"),
    "JSON and more": _append(b"\n{}"),
    # compression and length
    "gzip that is none": _body(b"{}", content_encoding="gzip"),
    "gzip that is cut off": _body(gzip.compress(b"{}" * 999)[:20], content_encoding="gzip"),
    "unknown compression": _body(b"{}", content_encoding="sdch"),
    "a gzip bomb": lambda *_: Reply(200, _compress_bomb(), {"content-encoding": "gzip"}),
    "an endless body": lambda *_: RawReply(_stream_zeros()),
    "half of the body": _send_half,
    "a byte at a time": _drip,
    "a negative length": _raw(_head(-1), b"{}"),
    "a length that is no number": _raw(_head("many"), b"{}"),
    "an enormous length": _raw(_head(2**62), b"{}"),
    "chunks that are none": _raw(_chunked_head(), b"zz\r\n{}\r\n"),
    "chunks that are cut off": _raw(_chunked_head(), b"ff\r\n{}"),
    # no HTTP
    "a hang-up": _raw(b""),
    "a reset": lambda *_: Reply(reset=True),
    "silence": lambda _, reply: Reply(200, reply.body, wait=2.0),
    "SSH": _raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "a TLS alert": _raw(b"\x15\x03\x01\x00\x02\x02\x28"),
    "noise": _raw(bytes(range(256))),
    "a status line without a status": _raw(b"HTTP/1.1\r\n\r\n{}"),
    "a status that is no number": _raw(b"HTTP/1.1 OK\r\n\r\n{}"),
    "an endless header": _raw(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n{}"),
    "a thousand headers": _raw(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 1_000 + b"\r\n{}"),
    "only 100 Continue": _raw(*[b"HTTP/1.1 100 Continue\r\n\r\n"] * 50),
    # statuses
    "201": _error(201),
    "204": _raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "206": _error(206),
    "300": _error(300),
    "a redirect to itself": _error(302, location="/"),
    "a redirect elsewhere": _error(307, location="http://192.0.2.1/"),
    "304": _raw(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
    "400": _error(400),
    "401": _error(401),
    "403": _error(403),
    "404": _error(404),
    "404 that is a page": _body(b"<html>nginx</html>", 404, content_type="text/html"),
    "405": _error(405),
    "408": _error(408),
    "409": _error(409),
    "413": _error(413),
    "429": _error(429),
    "429 for ever": _error(429, retry_after="999999999"),
    "429 until never": _error(429, retry_after="Fri, 31 Dec 9999 23:59:59 GMT"),
    "429 until yesterday": _error(429, retry_after="-5"),
    "429 until soon": _error(429, retry_after="soon"),
    "500": _error(500),
    "500 with escapes": _error(500, ESCAPES),
    "500 with a megabyte": _error(500, "x" * MEGABYTE),
    "500 with lone surrogates": _body(b'{"error": {"reason": "\\ud800"}, "status": 500}', 500),
    "501": _error(501),
    "502": _body(b"<html>bad gateway</html>", 502, content_type="text/html"),
    "503": _error(503),
    "504": _error(504),
    "599": _error(599),
    "999": _error(999),
}
"""Bad as an answer to any request."""

HARMLESS: dict[str, BadAnswer] = {
    "compressed": _compress_right,
    "a mark of byte order": _mark_order,
    "blanks behind": _append(b"  \n"),
    "another content type": _keep_body(content_type="text/plain"),
    "a warning header": _keep_body(warning='299 Elasticsearch "deprecated"'),
    "a cookie": _keep_body(set_cookie="a=b"),
    "a little late": _keep_body(wait=0.1),
}
"""Odd, but the right answer: understood, or an error."""


def find_kind(stage: str, name: str) -> BadAnswer:
    """Return the kind of this name, for the requests of a stage."""
    return {**ANYWHERE, **HARMLESS, **wrong_fields.IN_STAGE.get(stage, {})}[name]


def list_kinds(stage: str) -> list[str]:
    """Return the names of all kinds for a stage."""
    return [*ANYWHERE, *HARMLESS, *wrong_fields.IN_STAGE.get(stage, {})]
