"""Facts: the metadata of a document as terms of one field, and conditions as queries of it.

A fact is a field's name, the form of the value (as written, as a number, as an instant), and the
value, in bytes that have the order of the values; in hexadecimal digits, as tantivy's parser takes
ranges of plain words only. The id of a document is the fact without a name.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import tantivy

from hybrid_search.text.filters import ID, Condition, Range, Scalar, read_typed_values
from hybrid_search.text.values import Form

FIELD = "facts"

LONGEST = 30_000
"""Bytes of a text in a fact; tantivy takes twice as many in a term. Of a longer text a digest."""

_FORMS: Mapping[Form, bytes] = {"written": b"w", "numbers": b"n", "dates": b"d"}
_TEXT, _NUMBER, _TRUTH = b"s", b"n", b"b"
_OPENING, _CLOSING = {"gt": "{", "gte": "["}, {"lt": "}", "lte": "]"}
_AFTER = "g"
"""A character behind all hexadecimal digits."""


def list_facts(document_id: str, metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the facts of a document."""
    yield _encode(_name_bytes(""), "written", document_id)
    for name, form, value in read_typed_values(metadata):
        yield _encode(_name_bytes(name), form, value)


def prefix_of(name: str) -> str:
    """Return what the facts of a field begin with whose values are as written."""
    return _write(_name_bytes(name) + _FORMS["written"])


def read_fact(fact: str, name: str) -> Scalar:
    """Return the value of a fact of a field, as it was written."""
    data = bytes.fromhex(fact[len(prefix_of(name)) :])
    kind, data = data[:1], data[1:]
    if kind == _TEXT:
        return data[:LONGEST].decode(errors="ignore")
    number = _read_number(data)
    return bool(number) if kind == _TRUTH else number


def build_query(index: tantivy.Index, condition: Condition) -> tantivy.Query:
    """Return the query of a condition: all passages of the documents that fulfil it."""
    name = _name_bytes("" if condition.field == ID else condition.field)
    facts = [_encode(name, "written", value) for value in condition.values]
    queries = [tantivy.Query.term_set_query(index.schema, FIELD, facts)] if facts else []
    queries += [_build_range(index, name, limits) for limits in condition.ranges]
    found = any_of(queries)
    return all_but(found) if condition.is_negated else found


def build_field_query(index: tantivy.Index, name: str, *, is_object: bool) -> tantivy.Query:
    """Return the query of the passages whose documents have a value in a field, or in an object."""
    start = json.dumps(f"{name}.")[:-1].encode() if is_object else _name_bytes(name)
    return _find_between(index, f"[{_write(start)}", f"{_write(start)}{_AFTER}}}")


def any_of(queries: Iterable[tantivy.Query]) -> tantivy.Query:
    """Return the query of what one of `queries` finds; of none, if there are none."""
    parts = [(tantivy.Occur.Should, query) for query in queries]
    return tantivy.Query.boolean_query(parts) if parts else tantivy.Query.empty_query()


def all_of(*queries: tantivy.Query | None) -> tantivy.Query:
    """Return the query of what all `queries` find; None is left out."""
    parts = [(tantivy.Occur.Must, query) for query in queries if query is not None]
    return tantivy.Query.boolean_query(parts)


def all_but(query: tantivy.Query) -> tantivy.Query:
    """Return the query of what `query` does not find."""
    everything = (tantivy.Occur.Must, tantivy.Query.all_query())
    return tantivy.Query.boolean_query([everything, (tantivy.Occur.MustNot, query)])


def _build_range(index: tantivy.Index, name: bytes, limits: Range) -> tantivy.Query:
    start = name + _FORMS[limits.form]
    lower, upper = f"[{_write(start)}", f"{_write(start)}{_AFTER}}}"
    for operation, bound in limits.bounds:  # each at most once
        fact = _write(start + _encode_value(bound))
        if operation in ("gt", "gte"):
            lower = max(lower, f"{_OPENING[operation]}{fact}", key=lambda text: text[1:])
        else:
            upper = min(upper, f"{fact}{_CLOSING[operation]}")
    return _find_between(index, lower, upper)


def _find_between(index: tantivy.Index, lower: str, upper: str) -> tantivy.Query:
    return index.parse_query(f"{FIELD}:{lower} TO {upper}")


def _encode(name: bytes, form: Form, value: Scalar) -> str:
    return _write(name + _FORMS[form] + _encode_value(value))


def _write(data: bytes) -> str:
    return f"x{data.hex()}"  # no word of digits alone


def _name_bytes(name: str) -> bytes:
    return json.dumps(name).encode()  # the quotation mark at its end tells it from longer names


def _encode_value(value: Scalar) -> bytes:
    if isinstance(value, str):
        data = value.encode(errors="surrogatepass")
        if len(data) > LONGEST:
            data = data[:LONGEST] + hashlib.sha256(data).digest()
        return _TEXT + data
    return (_TRUTH if isinstance(value, bool) else _NUMBER) + _encode_number(value)


def _encode_number(number: float) -> bytes:
    """Return ten bytes in the order of numbers: the nearest float, and what it is off by."""
    nearest = float(number) + 0.0  # -0.0 is 0.0
    (bits,) = struct.unpack(">Q", struct.pack(">d", nearest))
    bits = bits ^ (2**64 - 1) if bits >> 63 else bits | 1 << 63
    rest = int(number) - int(nearest) if isinstance(number, int) else 0
    return struct.pack(">QH", bits, rest + 2**15)


def _read_number(data: bytes) -> float:
    bits, rest = struct.unpack(">QH", data)
    bits = bits ^ 1 << 63 if bits >> 63 else bits ^ (2**64 - 1)
    nearest: float = struct.unpack(">d", struct.pack(">Q", bits))[0]
    is_whole = nearest.is_integer() and abs(nearest) <= 2.0**63
    return int(nearest) + rest - 2**15 if is_whole else nearest
