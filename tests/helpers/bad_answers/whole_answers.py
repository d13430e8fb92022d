"""Answers that are wrong as a whole: another value, another format, or an error."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from typing import Any

import cbor2

from tests.helpers.bad_answers.exchange import ESCAPES, BadAnswer, change_answer, send_body
from tests.helpers.fake_cluster import CBOR
from tests.helpers.fake_server import Reply

DEPTH = 100_000
MEGABYTE = 2**20


def _whole(value: Any) -> BadAnswer:
    return change_answer(lambda _: value)


def _error(status: int, reason: str = "something is wrong", **headers: str) -> BadAnswer:
    error = {"type": "some_exception", "reason": reason, "root_cause": [{"reason": reason}]}
    return send_body({"error": error, "status": status}, status, **headers)


def _page(html: bytes, status: int = 200) -> BadAnswer:
    return send_body(html, status, content_type="text/html")


def _cbor(value: Any) -> BadAnswer:
    """Answer in CBOR, whether or not that was asked for."""
    body = value if isinstance(value, bytes) else cbor2.dumps(value)
    return lambda _: Reply(200, body, {"content-type": CBOR})


def _nest(opening: bytes, closing: bytes) -> bytes:
    return opening * DEPTH + b"1" + closing * DEPTH


WHOLE: dict[str, BadAnswer] = {
    # another value than an object
    "null": _whole(None),
    "true": _whole(True),
    "false": _whole(False),
    "a number": _whole(5),
    "an enormous number": send_body(b"1" * 10_000),
    "a text": _whole("ok"),
    "an empty text": _whole(""),
    "a list": _whole([]),
    "a list of null": _whole([None, None]),
    "a list of the answer": change_answer(lambda answer: [answer]),
    "an empty object": _whole({}),
    "an object of null": _whole({"hits": None, "responses": None, "items": None}),
    "an object in an object": change_answer(lambda answer: {"data": answer}),
    "an empty key": _whole({"": {}}),
    "the greeting of another service": _whole({"status": "UP", "version": "1.0"}),
    "an error with status 200": _whole({"error": {"type": "x", "reason": "y"}, "status": 500}),
    "a text for an error with status 200": send_body({"error": "no", "status": 500}),
    "an error that is a number": _whole({"error": 5, "status": 200}),
    # no JSON
    "nothing": send_body(b""),
    "blanks": send_body(b" \n "),
    "a page": _page(b"<html><h1>It works</h1></html>"),
    "a page that says it is JSON": send_body(b"<html></html>"),
    "plain text": send_body(b"OK", content_type="text/plain"),
    "an unknown type": send_body(b"{}", content_type="application/x-unknown"),
    "no type": send_body(b"{}", content_type=""),
    "not UTF-8": send_body(b'{"version": "\xff\xfe"}'),
    "UTF-16": send_body('{"version": {}}'.encode("utf-16")),
    "zeros": send_body(bytes(4096)),
    "deeply nested lists": send_body(_nest(b"[", b"]")),
    "deeply nested objects": send_body(_nest(b'{"a":', b"}")),
    "a list that never ends": send_body(b"[" * DEPTH),
    "NaN": send_body(b'{"hits": NaN, "took": Infinity}'),
    "SMILE": send_body(b":)\n\x05\xfa\xfb", content_type="application/smile"),
    # CBOR
    "CBOR that nobody asked for": send_body(b"\x83\x01\x02\x03", content_type="application/cbor"),
    "CBOR that is cut off": send_body(b"\xbf\x64hits\xbf", content_type="application/cbor"),
    "CBOR: nothing": _cbor(b""),
    "CBOR: a break": _cbor(b"\xff"),
    "CBOR: a list of 2**62 parts": _cbor(b"\x9b\x40" + bytes(7)),
    "CBOR: a list of 2**63 - 1 parts": _cbor(b"\x9b\x7f" + b"\xff" * 7),
    "CBOR: a text of 2**62 bytes": _cbor(b"\x7b\x40" + bytes(7)),
    "CBOR: nested deeply": _cbor(b"\x81" * DEPTH + b"\x00"),
    "CBOR: tags nested deeply": _cbor(b"\xc1" * DEPTH + b"\x00"),
    "CBOR: keys that are numbers": _cbor({1: 2}),
    "CBOR: a key that is a list": _cbor(b"\xa1\x80\x00"),
    "CBOR: a date": _cbor(dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
    "CBOR: a date that is none": _cbor(b"\xc0\x61x"),
    "CBOR: a fraction by zero": _cbor(b"\xd8\x1e\x82\x01\x00"),
    "CBOR: a decimal": _cbor({"hits": decimal.Decimal("NaN")}),
    "CBOR: a pattern": _cbor(re.compile("a")),
    "CBOR: a broken pattern": _cbor(b"\xd8\x23\x61("),
    "CBOR: a value that holds itself": _cbor(b"\xd8\x1c\x81\xd8\x1d\x00"),
    "CBOR: undefined": _cbor(b"\xf7"),
    "CBOR: a text that is not UTF-8": _cbor(b"\xa1\x61a\x61\xff"),
}

STATUSES: dict[str, BadAnswer] = {
    "201": _error(201),
    "206": _error(206),
    "a status without meaning": send_body(b"{}", 299),
    "300": _error(300),
    "a redirect to nowhere": send_body(b"", 301, location="http://127.0.0.1:1/"),
    "a redirect to itself": _error(302, location="/"),
    "a redirect elsewhere": _error(307, location="http://192.0.2.1/"),
    "400": _error(400),
    "400 with null": send_body(None, 400),
    "400 with lists": send_body({"error": ["x", {"reason": 5}]}, 400),
    "400 with a cause that is a number": send_body({"error": {"type": 5, "root_cause": 5}}, 400),
    "400 nested deeply": send_body(b'{"error":' + _nest(b'{"a":', b"}") + b"}", 400),
    "400 with escapes": _error(400, ESCAPES),
    "401": _error(401),
    "403": _error(403),
    "404": _error(404),
    "404 that is a page": _page(b"<html>nginx</html>", 404),
    "405": _error(405),
    "408": _error(408),
    "409": _error(409),
    "413": _error(413),
    "429": _error(429),
    "429 for ever": _error(429, retry_after="999999999"),
    "429 until never": _error(429, retry_after="Fri, 31 Dec 9999 23:59:59 GMT"),
    "429 until yesterday": _error(429, retry_after="-5"),
    "429 until soon": _error(429, retry_after="soon"),
    "429 until an enormous number": send_body(b"{}", 429, retry_after="9" * 5000),
    "500": _error(500),
    "500 with null": send_body({"error": None}, 500),
    "500 with a list": send_body(["x"], 500),
    "500 with a list of lists": send_body({"error": [["x"]]}, 500),
    "500 with odd causes": send_body({"error": {"root_cause": 5, "caused_by": [1]}}, 500),
    "500 with causes that are texts": send_body(
        {"error": {"type": {"a": 1}, "root_cause": ["x", None], "caused_by": ["y"]}}, 500
    ),
    "500 with escapes": _error(500, ESCAPES),
    "500 with a megabyte": _error(500, "x" * MEGABYTE),
    "500 with lone surrogates": send_body(b'{"error": {"reason": "\\ud800"}, "status": 500}', 500),
    "501": _error(501),
    "502": _page(b"<html>bad gateway</html>", 502),
    "503": _error(503),
    "503 with a text": send_body({"error": "busy"}, 503),
    "504": _error(504),
    "599": _error(599),
    "999": _error(999),
}
