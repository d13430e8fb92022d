"""10,000 good lines, each damaged in some way: it is a document or is refused with a reason.

No other error is raised.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends import open_backend
from hybrid_search.errors import InputError
from hybrid_search.ingest import document_parser, pipeline
from hybrid_search.ingest import rejects as rejected
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.types import SourceLine
from hybrid_search.text.types import Document
from tests.helpers.tiny_encoder import TinyEncoder

pytestmark = pytest.mark.faults

LINES = 10_000
SEED = 7
"""Fixed, so that a failure can be repeated; the message names the line."""

Chance = random.Random  # noqa: S311 (no secret)
JsonObject = dict[str, Any]

ODD = [
    *' \n\x00\x1f\x7f\ud800\udc80\ufeff\uffff\U0010ffff\u2028\u202e\u200d\ufe0fﬁİß"\\',
    *("", "e\u0301", "👨‍👩‍👧", "🇩🇪", "नमस्ते", "ภาษาไทย", "日本語の文", "مرحبا"),
    *("a" * 600, "word " * 400, "." * 50, "\t\r\n", "\\u0000"),
]
VALUES: list[Any] = [
    *(None, True, False, 0, -1, -0.0, 1e308, 2**53, 2**63, 2**64, 10**30, -(10**400), 1.5),
    *([], {}, [[]], [None], {"": ""}, {"a.b": 1}, [{"a": [1]}], ["a", 1], [1, "x", None]),
    *([{"a": 1}, {"a": "b"}], "text", {"text": "x"}, {"$oid": "1"}, "1e5", "2024-01-01"),
]
ODD_BYTES = [
    *(b"\xff", b"\x00", b"\\u0000", b"\\ud800", b"\xed\xa0\x80", b"{", b'"', b",", b"NaN", b"-"),
    b"9" * 5000,
]


def make_document(chance: Chance) -> JsonObject:
    number = chance.randrange(4000)  # so that some ids come twice
    document: JsonObject = {
        "id": f"d{number}",
        "sector": chance.choice(["shop", "bank"]),
        "n": number,
        "tags": ["a", "b"],
        "deep": {"er": {"still": 1.5}},
    }
    if chance.random() < 0.5:
        return document | {"text": f"word{number} of a text"}
    turns = [
        {
            "speaker": "agent",
            "text": f"turn {turn}",
            "start_ms": turn * 1000,
            "end_ms": turn * 1000 + 9,
        }
        for turn in range(chance.randrange(1, 5))
    ]
    return document | {"turns": turns}


# Objects that are changed before they are written


def choose_odd_value(chance: Chance) -> Any:
    return chance.choice(chance.choice((ODD, VALUES)))


def replace_value(document: JsonObject, chance: Chance) -> Any:
    return {**document, chance.choice(list(document)): choose_odd_value(chance)}


def add_key(document: JsonObject, chance: Chance) -> Any:
    names = [*ODD, "a.b", "_id", "document_id", "spans", "text", "turns"]
    return {**document, chance.choice(names): choose_odd_value(chance)}


def drop_key(document: JsonObject, chance: Chance) -> Any:
    del document[chance.choice(list(document))]
    return document


def insert_turn(document: JsonObject, chance: Chance) -> Any:
    turns = list(document.get("turns", []))
    odd = choose_odd_value(chance)
    turn = chance.choice([odd, {"text": odd}, {"text": "hm", "start_ms": odd}, {}])
    turns.insert(chance.randrange(len(turns) + 1), turn)
    return {**document, "turns": turns}


def nest_value(document: JsonObject, chance: Chance) -> Any:
    inside: Any = choose_odd_value(chance)
    for _ in range(chance.choice([3, 18, 19, 20, 21, 300])):
        inside = [inside] if chance.random() < 0.5 else {"m": inside}
    return {**document, "nested": inside}


def replace_document(_: JsonObject, chance: Chance) -> Any:
    return choose_odd_value(chance)


OBJECTS: tuple[Callable[[JsonObject, Chance], Any], ...] = (
    replace_value,
    add_key,
    drop_key,
    insert_turn,
    nest_value,
    replace_document,
)


# Lines that are changed afterwards


def flip_bits(line: bytes, chance: Chance) -> bytes:
    changed = bytearray(line)
    for _ in range(chance.randrange(1, 8)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def truncate_line(line: bytes, chance: Chance) -> bytes:
    return line[: chance.randrange(len(line))]


def insert_bytes(line: bytes, chance: Chance) -> bytes:
    place = chance.randrange(len(line) + 1)
    return line[:place] + chance.choice(ODD_BYTES) + line[place:]


def repeat_key(line: bytes, chance: Chance) -> bytes:
    key = chance.choice([b"id", b"text", b"turns", b"n"])
    value = json.dumps(choose_odd_value(chance)).encode()
    return line.rstrip()[:-1] + b', "' + key + b'": ' + value + b"}"


def double_line(line: bytes, _: Chance) -> bytes:
    return line + line


def add_byte_order_mark(line: bytes, _: Chance) -> bytes:
    return b"\xef\xbb\xbf" + line


def reencode_line(line: bytes, chance: Chance) -> bytes:
    return line.decode().encode(chance.choice(["utf-16", "utf-16-le", "utf-32", "utf-7"]))


def shuffle_bytes(line: bytes, chance: Chance) -> bytes:
    return bytes(chance.sample(line, len(line)))


def add_deep_list(line: bytes, chance: Chance) -> bytes:
    depth = chance.choice([100, 990, 5000, 100_000])
    closing = b"]" * chance.choice([depth, 0])
    return line.rstrip()[:-1] + b', "deep": ' + b"[" * depth + closing + b"}"


def random_bytes(_: bytes, chance: Chance) -> bytes:
    return chance.randbytes(chance.randrange(200))


BYTES: tuple[Callable[[bytes, Chance], bytes], ...] = (
    *(flip_bits, truncate_line, insert_bytes, repeat_key, double_line, add_byte_order_mark),
    *(reencode_line, shuffle_bytes, add_deep_list, random_bytes),
)


def fuzz_line(chance: Chance) -> bytes:
    document = make_document(chance)
    if chance.random() < 0.5:
        line = chance.choice(BYTES)(json.dumps(document, ensure_ascii=False).encode(), chance)
    else:
        line = json.dumps(
            chance.choice(OBJECTS)(document, chance), ensure_ascii=chance.random() < 0.8
        ).encode("utf-8", "surrogatepass")
    return line.replace(b"\n", b" ")


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    chance = Chance(SEED)
    return [fuzz_line(chance) for _ in range(LINES)]


def parse_line(line: bytes) -> Document | str:
    """Return the document, or the reason of a refusal; any other error fails the test."""
    try:
        return document_parser.parse(line)[0]
    except InputError as error:
        return str(error)


def reason_kind(reason: str) -> str:
    """Return the part of a reason that does not differ from line to line."""
    return " ".join(word for word in reason.split()[:3] if word.isalpha())


def test_each_line_is_a_document_or_has_a_reason(lines: list[bytes]) -> None:
    outcomes = [parse_line(line) for line in lines]
    reasons = [outcome for outcome in outcomes if isinstance(outcome, str)]
    # a reason may name a field, and the longest name has 2,000 characters
    assert all(reason.strip() and len(reason) < 2200 and "\n" not in reason for reason in reasons)
    assert 1000 < len(reasons) < LINES - 1000
    kinds = Counter(map(reason_kind, reasons))
    assert len(kinds) > 15, kinds
    for outcome in outcomes:
        if isinstance(outcome, Document):
            outcome.text.encode()
            assert all(outcome.text[turn.start : turn.end] == turn.text for turn in outcome.turns)


@pytest.mark.parametrize("url", ["memory:", "embedded:store"])
def test_an_ingest_of_all_of_them_takes_the_good_and_tells_of_the_bad(
    url: str, lines: list[bytes]
) -> None:
    rejects = Path("rejected.jsonl")
    source_lines = [
        SourceLine("fuzz", number, line + b"\n") for number, line in enumerate(lines, 1)
    ]
    with closing(open_backend(url)) as backend:
        summary = pipeline.ingest(
            source_lines, backend, TinyEncoder(), IngestOptions("calls", rejects)
        )
        description = backend.describe_index("calls")
    entries = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert summary.read == len([line for line in lines if line.strip()])
    assert summary.documents + summary.failed + summary.skipped == summary.read
    assert (summary.failed, summary.skipped) == (len(entries), 0)
    # Every invalid line is in the rejects file; so are valid ones whose metadata has another type
    # than that of earlier documents.
    bad_lines = {
        number
        for number, line in enumerate(lines, 1)
        if line.strip() and isinstance(parse_line(line), str)
    }
    reasons_by_line = {entry["line"]: entry["reason"] for entry in entries}
    assert len(reasons_by_line) == len(entries)
    assert bad_lines <= set(reasons_by_line)
    assert all(
        reasons_by_line[number].startswith("metadata field ")
        for number in set(reasons_by_line) - bad_lines
    )
    for entry in entries:
        document = entry["document"].encode("utf-8", "surrogateescape")
        assert document == lines[entry["line"] - 1].rstrip(b"\r\n")
    parsed_lines = [
        parse_line(line) for number, line in enumerate(lines, 1) if number not in reasons_by_line
    ]
    document_ids = {parsed.id for parsed in parsed_lines if isinstance(parsed, Document)}
    assert description.documents == len(document_ids)
    rejected.check_retried(rejects)
    assert [
        (source_line.number, source_line.fault)
        for source_line in rejected.read_retried(rejects)
        if source_line.fault
    ] == []
