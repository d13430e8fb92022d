"""Answers in broken HTTP, of a wrong length or compression, too slow, or without end."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from tests.helpers.bad_answers.exchange import BadAnswer, send_body
from tests.helpers.fake_cluster import Exchange
from tests.helpers.fake_server import RawReply, Reply

MEGABYTE = 2**20
ENDLESS_MEGABYTES = 512


def _raw(*pieces: bytes) -> BadAnswer:
    return lambda _: RawReply(pieces)


def _encode_right(exchange: Exchange) -> Reply:
    return exchange.encode(exchange.answer)


def _change(**changes: Any) -> BadAnswer:
    """Return the kind that differs from the right reply in these attributes."""
    return lambda exchange: replace(_encode_right(exchange), **changes)


def _change_bytes(change: Callable[[bytes], bytes], **headers: str) -> BadAnswer:
    names = {name.replace("_", "-"): value for name, value in headers.items()}

    def reply(exchange: Exchange) -> Reply:
        right = _encode_right(exchange)
        return replace(right, body=change(right.body), headers=right.headers | names)

    return reply


def _head(length: object) -> bytes:
    lines = ("HTTP/1.1 200 OK", "content-type: application/json",
             "x-elastic-product: Elasticsearch", f"content-length: {length}")  # fmt: skip
    return "\r\n".join([*lines, "", ""]).encode()


def _chunked_head() -> bytes:
    return _head(0).replace(b"content-length: 0", b"transfer-encoding: chunked")


def _send_half(exchange: Exchange) -> RawReply:
    body: bytes = _encode_right(exchange).body
    return RawReply([_head(len(body)), body[: len(body) // 2]])


def _stream_zeros() -> Iterator[bytes]:
    yield _head(ENDLESS_MEGABYTES * MEGABYTE)
    for _ in range(ENDLESS_MEGABYTES):
        yield bytes(MEGABYTE)


@cache
def _compress_bomb() -> bytes:
    """Return half a gigabyte of blanks, compressed to half a megabyte."""
    return gzip.compress(b" " * (64 * MEGABYTE)) * (ENDLESS_MEGABYTES // 64)


BROKEN: dict[str, BadAnswer] = {
    # compression and length
    "half of the answer": _change_bytes(lambda body: body[: len(body) // 2]),
    "the answer and more": _change_bytes(lambda body: body + b"]"),
    "the answer and an object": _change_bytes(lambda body: body + b"\n{}"),
    "gzip that is none": send_body(b"{}", content_encoding="gzip"),
    "gzip that is cut off": send_body(gzip.compress(b"{}" * 999)[:20], content_encoding="gzip"),
    "gzip without its end": send_body(gzip.compress(b"{}" * 100)[:-9], content_encoding="gzip"),
    "gzip of a list": send_body(gzip.compress(b"[]"), content_encoding="gzip"),
    "unknown compression": send_body(b"{}", content_encoding="sdch"),
    "half of the body": _send_half,
    "two megabytes": send_body(b'{"a": "' + b"x" * (2 * MEGABYTE) + b'"}'),
    "a negative length": _raw(_head(-1), b"{}"),
    "a length that is no number": _raw(_head("many"), b"{}"),
    "an enormous length": _raw(_head(2**62), b"{}"),
    "chunks that are none": _raw(_chunked_head(), b"zz\r\n{}\r\n"),
    "chunks that are cut off": _raw(_chunked_head(), b"ff\r\n{}"),
    # no HTTP
    "a hang-up": _raw(b""),
    "a reset": lambda _: Reply(reset=True),
    "SSH": _raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "a TLS alert": _raw(b"\x15\x03\x01\x00\x02\x02\x28"),
    "noise": _raw(bytes(range(256))),
    "a status line without a status": _raw(b"HTTP/1.1\r\n\r\n{}"),
    "a status that is no number": _raw(b"HTTP/1.1 OK\r\n\r\n{}"),
    "an endless header": _raw(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n{}"),
    "a thousand headers": _raw(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 1_000 + b"\r\n{}"),
    "only 100 Continue": _raw(*[b"HTTP/1.1 100 Continue\r\n\r\n"] * 50),
    "204": _raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "304": _raw(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
}

ENDLESS: dict[str, BadAnswer] = {
    "a longer length than the body": send_body(b"{}", content_length="1000"),
    "a gzip bomb": lambda _: Reply(200, _compress_bomb(), {"content-encoding": "gzip"}),
    "an endless body": lambda _: RawReply(_stream_zeros()),
    "silence": _change(wait=2.0),
}
"""Only a limit of the client ends them."""

HARMLESS: dict[str, BadAnswer] = {
    "compressed": _change_bytes(gzip.compress, content_encoding="gzip"),
    "a mark of byte order": _change_bytes(lambda body: b"\xef\xbb\xbf" + body),
    "blanks behind": _change_bytes(lambda body: body + b"  \n"),
    "another content type": _change_bytes(bytes, content_type="text/plain"),
    "a warning header": _change_bytes(bytes, warning='299 Elasticsearch "deprecated"'),
    "a cookie": _change_bytes(bytes, set_cookie="a=b"),
    "a little late": _change(wait=0.1),
}
"""Odd, but the right answer: understood, or an error."""
