"""10,000 lines that were good once: whatever is done to them, each is a document or is refused with a reason, and no error is left over."""

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
from hybrid_search.ingest import again, documents, worker
from hybrid_search.ingest.sources import Line
from hybrid_search.types import Document
from tests.tiny import TinyEncoder

LINES = 10_000
SEED = 7
"""Fixed, so that a failure comes again; the message names the line."""

Chance = random.Random
Made = dict[str, Any]

ODD = [
    *("", " ", "\n", "\x00", "\x1f", "\x7f", "\ud800", "\udc80", "\ufeff", "\uffff", "\U0010ffff", "\u2028", "\u202e", "e\u0301", "\u200d", "\ufe0f"),
    *("👨‍👩‍👧", "🇩🇪", "नमस्ते", "ภาษาไทย", "日本語の文", "مرحبا", "ﬁ", "İ", "ß", "a" * 600, "word " * 400, "." * 50, "\t\r\n", "\\u0000", '"', "\\"),
]
VALUES: list[Any] = [
    *(None, True, False, 0, -1, -0.0, 1e308, 2**53, 2**63, 2**64, 10**30, -(10**400), 1.5, [], {}, [[]], [None], {"": ""}, {"a.b": 1}, [{"a": [1]}]),
    *(["a", 1], [{"a": 1}, {"a": "b"}], "text", {"text": "x"}, [1, "x", None], {"$oid": "1"}, "1e5", "2024-01-01"),
]


def good(chance: Chance) -> Made:
    number = chance.randrange(4000)  # so that some ids come twice
    made: Made = {"id": f"d{number}", "sector": chance.choice(["shop", "bank"]), "n": number, "tags": ["a", "b"], "deep": {"er": {"still": 1.5}}}
    if chance.random() < 0.5:
        return made | {"text": f"word{number} of a text"}
    turns = [
        {"speaker": "agent", "text": f"turn {each}", "start_ms": each * 1000, "end_ms": each * 1000 + 900} for each in range(chance.randrange(1, 5))
    ]
    return made | {"turns": turns}


# Objects that are changed before they are written


def odd(chance: Chance) -> Any:
    return chance.choice(chance.choice((ODD, VALUES)))


def another_value(made: Made, chance: Chance) -> Any:
    return {**made, chance.choice(list(made)): odd(chance)}


def another_key(made: Made, chance: Chance) -> Any:
    return {**made, chance.choice([*ODD, "a.b", "_id", "document_id", "spans", "text", "turns"]): odd(chance)}


def lost_key(made: Made, chance: Chance) -> Any:
    del made[chance.choice(list(made))]
    return made


def another_turn(made: Made, chance: Chance) -> Any:
    turns = list(made.get("turns", []))
    turns.insert(chance.randrange(len(turns) + 1), chance.choice([odd(chance), {"text": odd(chance)}, {"text": "hm", "start_ms": odd(chance)}, {}]))
    return {**made, "turns": turns}


def nested(made: Made, chance: Chance) -> Any:
    inside: Any = odd(chance)
    for _ in range(chance.choice([3, 18, 19, 20, 21, 300])):
        inside = [inside] if chance.random() < 0.5 else {"m": inside}
    return {**made, "nested": inside}


def no_object(_: Made, chance: Chance) -> Any:
    return odd(chance)


OBJECTS: tuple[Callable[[Made, Chance], Any], ...] = (another_value, another_key, lost_key, another_turn, nested, no_object)


# Lines that are changed afterwards


def flipped(line: bytes, chance: Chance) -> bytes:
    changed = bytearray(line)
    for _ in range(chance.randrange(1, 8)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut(line: bytes, chance: Chance) -> bytes:
    return line[: chance.randrange(len(line))]


def inserted(line: bytes, chance: Chance) -> bytes:
    place = chance.randrange(len(line) + 1)
    return (
        line[:place]
        + chance.choice([b"\xff", b"\x00", b"\\u0000", b"\\ud800", b"\xed\xa0\x80", b"{", b'"', b",", b"NaN", b"9" * 5000, b"-"])
        + line[place:]
    )


def repeated_key(line: bytes, chance: Chance) -> bytes:
    key = chance.choice([b"id", b"text", b"turns", b"n"])
    return line.rstrip()[:-1] + b', "' + key + b'": ' + json.dumps(odd(chance)).encode() + b"}"


def twice(line: bytes, _: Chance) -> bytes:
    return line + line


def with_mark(line: bytes, _: Chance) -> bytes:
    return b"\xef\xbb\xbf" + line


def another_encoding(line: bytes, chance: Chance) -> bytes:
    return line.decode().encode(chance.choice(["utf-16", "utf-16-le", "utf-32", "utf-7"]))


def shuffled(line: bytes, chance: Chance) -> bytes:
    return bytes(chance.sample(line, len(line)))


def deep(line: bytes, chance: Chance) -> bytes:
    depth = chance.choice([100, 990, 5000, 100_000])
    return line.rstrip()[:-1] + b', "deep": ' + b"[" * depth + b"]" * chance.choice([depth, 0]) + b"}"


def noise(_: bytes, chance: Chance) -> bytes:
    return chance.randbytes(chance.randrange(200))


BYTES: tuple[Callable[[bytes, Chance], bytes], ...] = (
    *(flipped, cut, inserted, repeated_key, twice, with_mark),
    *(another_encoding, shuffled, deep, noise),
)


def fuzzed(chance: Chance) -> bytes:
    made = good(chance)
    if chance.random() < 0.5:
        line = chance.choice(BYTES)(json.dumps(made, ensure_ascii=False).encode(), chance)
    else:
        line = json.dumps(chance.choice(OBJECTS)(made, chance), ensure_ascii=chance.random() < 0.8).encode("utf-8", "surrogatepass")
    return line.replace(b"\n", b" ")


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    chance = Chance(SEED)
    return [fuzzed(chance) for _ in range(LINES)]


def parsed(line: bytes) -> Document | str:
    """A document, or the reason why there is none; anything else but that fails the test."""
    try:
        return documents.parse(line)[0]
    except InputError as error:
        return str(error)


def kind(reason: str) -> str:
    """A reason without what differs from line to line."""
    return " ".join(word for word in reason.split()[:3] if word.isalpha())


def test_each_line_is_a_document_or_has_a_reason(lines: list[bytes]) -> None:
    found = [parsed(line) for line in lines]
    reasons = [each for each in found if isinstance(each, str)]
    assert all(reason.strip() and len(reason) < 1200 and "\n" not in reason for reason in reasons)
    assert 1000 < len(reasons) < LINES - 1000
    kinds = Counter(map(kind, reasons))
    assert len(kinds) > 15, kinds
    for each in found:
        if isinstance(each, Document):
            each.text.encode()
            assert all(each.text[turn.start : turn.end] == turn.text for turn in each.turns)


@pytest.mark.parametrize("url", ["memory:", "embedded:store"])
def test_an_ingest_of_all_of_them_takes_the_good_and_tells_of_the_bad(url: str, lines: list[bytes]) -> None:
    rejects = Path("rejected.jsonl")
    given = [Line("fuzz", number, line + b"\n") for number, line in enumerate(lines, 1)]
    with closing(open_backend(url)) as backend:
        summary = worker.ingest(given, backend, TinyEncoder(), "calls", rejects)
        held = backend.describe("calls")
    written = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert summary.read == len([line for line in lines if line.strip()])
    assert summary.documents + summary.failed + summary.skipped == summary.read
    assert (summary.failed, summary.skipped) == (len(written), 0)
    # Every line that is no document is there; of those that are, some have metadata of another type than those before.
    bad = {number for number, line in enumerate(lines, 1) if line.strip() and isinstance(parsed(line), str)}
    refused = {entry["line"]: entry["reason"] for entry in written}
    assert len(refused) == len(written)
    assert bad <= set(refused)
    assert all(refused[number].startswith("metadata field ") for number in set(refused) - bad)
    assert all(entry["document"].encode("utf-8", "surrogateescape") == lines[entry["line"] - 1].rstrip(b"\r\n") for entry in written)
    taken = {document.id for number, line in enumerate(lines, 1) if number not in refused and isinstance(document := parsed(line), Document)}
    assert held.documents == len(taken)
    again.check(rejects)
    assert [(each.number, each.fault) for each in again.read(rejects) if each.fault] == []
