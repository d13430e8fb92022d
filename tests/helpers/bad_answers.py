"""Bad answers of a server, by their kind: what a broken, foreign or hostile one might send.

Each takes the request and the good answer to it, and returns the reply that is sent instead.
"""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
import json
import re
from collections.abc import Callable
from typing import Any

import cbor2

from tests.helpers.fake_cluster import CBOR_TYPES, encode_answer
from tests.helpers.fake_server import HttpRequest, Reply

BadAnswer = Callable[[str, HttpRequest, Any], Reply]
"""Makes the reply to a request from engine, request and good answer."""

DEPTH = 100_000


def _whole(value: Any) -> BadAnswer:
    return lambda engine, request, _: encode_answer(engine, request, value)


def _raw(body: bytes, status: int = 200, **headers: str) -> BadAnswer:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda *_: Reply(status, body, names)


def _change(change: Callable[[Any], Any]) -> BadAnswer:
    return lambda engine, request, good: encode_answer(engine, request, change(good))


def _each(change: Callable[[Any], Any]) -> BadAnswer:
    """Change every value inside an answer, from the inside out."""

    def change_inside(value: Any) -> Any:
        if isinstance(value, dict):
            return change({key: change_inside(inner) for key, inner in value.items()})
        if isinstance(value, list):
            return change([change_inside(inner) for inner in value])
        return change(value)

    return _change(
        lambda good: (
            {key: change_inside(value) for key, value in good.items()}
            if isinstance(good, dict)
            else change_inside(good)
        )
    )


def _replace(kind: type, value: Any) -> BadAnswer:
    """Replace every value of one type, except booleans, which Python counts as numbers."""
    return _each(lambda inner: value if type(inner) is kind else inner)


def _rename_keys(value: Any) -> Any:
    return {f"{key}x": inner for key, inner in value.items()} if isinstance(value, dict) else value


def _remove(name: str) -> BadAnswer:
    def drop(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: inner for key, inner in value.items() if key != name}

    return _each(drop)


def _set(name: str, new: Any) -> BadAnswer:
    """Replace the value of a key wherever it occurs."""

    def replace(value: Any) -> Any:
        if not isinstance(value, dict) or name not in value:
            return value
        return {**value, name: new}

    def replace_inside(good: Any) -> Any:
        return replace(good)

    inner = _each(replace)
    return lambda engine, request, good: inner(engine, request, replace_inside(good))


def _encode(encode: Callable[[bytes], bytes]) -> BadAnswer:
    """Change the bytes of the good answer."""

    def reply(engine: str, request: HttpRequest, good: Any) -> Reply:
        answer = encode_answer(engine, request, good)
        is_bytes = isinstance(answer.body, bytes)
        body = answer.body if is_bytes else json.dumps(answer.body).encode()
        return Reply(200, encode(body), answer.headers)

    return reply


def _cbor(value: Any) -> BadAnswer:
    """Answer in CBOR, whether or not that was asked for."""
    body = value if isinstance(value, bytes) else cbor2.dumps(value)
    return lambda engine, *_: Reply(200, body, {"content-type": CBOR_TYPES[engine]})


def _error(status: int, body: Any) -> BadAnswer:
    return lambda *_: Reply(status, body)


def _nest(opening: bytes, closing: bytes) -> bytes:
    return opening * DEPTH + b"1" + closing * DEPTH


HTML = b"<html><head><title>Welcome</title></head><body>It works!</body></html>"

BAD_ANSWERS: dict[str, BadAnswer] = {
    # another value than an object
    "null": _whole(None),
    "false": _whole(False),
    "a number": _whole(5),
    "a huge number": _raw(b"9" * 5000),
    "a text": _whole("OK"),
    "an empty text": _whole(""),
    "an empty list": _whole([]),
    "a list of nulls": _whole([None, None]),
    "a list of the answer": _change(lambda good: [good]),
    "an empty object": _whole({}),
    "an object in an object": _change(lambda good: {"data": good}),
    "an empty key": _whole({"": {}}),
    "the greeting of another service": _whole({"status": "UP", "version": "1.0"}),
    "an error with status 200": _whole({"error": {"type": "x", "reason": "y"}, "status": 500}),
    "an error that is a number": _whole({"error": 5, "status": 200}),
    # bytes that are not the format
    "no body": _raw(b""),
    "blanks": _raw(b" \n "),
    "a web page": _raw(HTML, content_type="text/html"),
    "a web page that says it is JSON": _raw(HTML),
    "plain text": _raw(b"OK", content_type="text/plain"),
    "an unknown type": _raw(b"{}", content_type="application/x-unknown"),
    "no type": _raw(b"{}", content_type=""),
    "half of the answer": _encode(lambda body: body[: len(body) // 2]),
    "the answer and more": _encode(lambda body: body + b"]"),
    "bytes that are not UTF-8": _raw(b'{"a": "\xff\xfe"}'),
    "UTF-16": _raw('{"took": 1}'.encode("utf-16")),
    "zeros": _raw(bytes(1000)),
    "lists nested deeply": _raw(_nest(b"[", b"]")),
    "objects nested deeply": _raw(_nest(b'{"a":', b"}")),
    "a list that never ends": _raw(b"[" * DEPTH),
    "numbers that JSON does not have": _raw(b'{"took": NaN, "hits": Infinity}'),
    "gzip that is none": _raw(b"{}", content_encoding="gzip"),
    "gzip that is cut": _raw(gzip.compress(b"{}" * 100)[:-9], content_encoding="gzip"),
    "gzip that was not asked for": _raw(gzip.compress(b"[]"), content_encoding="gzip"),
    "a larger answer than is read": _raw(b'{"a": "' + b"x" * 2_000_000 + b'"}'),
    "a longer length than the body": _raw(b"{}", content_length="1000"),
    "a length that is no number": _raw(b"{}", content_length="many"),
    # CBOR
    "CBOR: nothing": _cbor(b""),
    "CBOR: a break": _cbor(b"\xff"),
    "CBOR: a list of 2**62 parts": _cbor(b"\x9b\x40" + bytes(7)),
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
    # the good answer with something changed
    "every text is a number": _replace(str, 7),
    "every text is null": _replace(str, None),
    "every text is a list": _replace(str, ["x"]),
    "every whole number is a text": _replace(int, "many"),
    "every whole number is negative": _replace(int, -7),
    "every whole number is an object": _replace(int, {}),
    "every number is not one": _replace(float, float("nan")),
    "every number is without end": _replace(float, float("inf")),
    "every boolean is a text": _replace(bool, "perhaps"),
    "every list is null": _replace(list, None),
    "every list is an object": _replace(list, {}),
    "every list is in a list": _each(lambda value: [value] if isinstance(value, list) else value),
    "every inner object is null": _replace(dict, None),
    "every inner object is a list": _replace(dict, []),
    "every inner object is a text": _replace(dict, "x"),
    "every inner key is another": _each(_rename_keys),
    "hits without _id": _remove("_id"),
    "hits without _source": _remove("_source"),
    "hits without fields": _remove("fields"),
    "hits without _score": _remove("_score"),
    "hits without sort": _remove("sort"),
    "an empty sort": _set("sort", []),
    "ids that name no passage": _set("_id", "kettle"),
    "ids with a huge number": _set("_id", "kettle#" + "9" * 5000),
    "token codes that are not base64": _set("tokens", ["***"]),
    "token codes of nothing": _set("tokens", ["AAAA"]),
    "a layout that is not JSON": _set("layout", "["),
    "a layout of numbers": _set("layout", "[1, 2]"),
    "metadata that is a text": _set("metadata", "x"),
    "a text that does not fit the marks": _set("highlight", {"text": ["else"]}),
    "a _meta that is a text": _set("_meta", "x"),
    "a _meta with a text of ours": _set("_meta", {"hybrid_search": "x"}),
    "a _meta with half of ours": _set("_meta", {"hybrid_search": {"schema": 1, "model": "x"}}),
    "a field type that is a list": _set("type", ["keyword"]),
    "properties that are a list": _set("properties", ["text"]),
    "settings that are not numbers": _set("settings", {"index.number_of_shards": "x"}),
    "no settings": _set("settings", {}),
    "a status that is a text": _set("status", "created"),
    # errors
    "an error that is null": _error(400, None),
    "an error that is a list": _error(500, ["x"]),
    "an error of lists": _error(400, {"error": ["x", {"reason": 5}]}),
    "an error with a root cause that is a number": _error(
        400, {"error": {"type": 5, "root_cause": 5}}
    ),
    "an error with root causes that are texts": _error(
        500, {"error": {"type": {"a": 1}, "root_cause": ["x", None], "caused_by": ["y"]}}
    ),
    "an error nested deeply": _error(400, b'{"error":' + _nest(b'{"a":', b"}") + b"}"),
    "an error of escape characters": _error(
        400, {"error": {"type": "x", "reason": "\x1b]0;title\x07\x1b[2J\u202e"}}
    ),
    "an error that is larger than is read": _error(500, b"x" * 2_000_000),
    "a status without meaning": _raw(b"{}", 299),
    "a redirection to nowhere": _raw(b"", 301, location="http://127.0.0.1:1/"),
    "an information": _raw(b"", 204),
    "busy for ever": _error(503, {"error": "busy"}),
    "busy until a time that is none": _raw(b"{}", 429, retry_after="9" * 5000),
}
