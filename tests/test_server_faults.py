"""Servers that are lost, slow, busy and half answering, workers and servers that are killed: afterwards every document is there exactly once."""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import re
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import pytest

from hybrid_search import reindex
from hybrid_search.access import Access
from hybrid_search.backends import open_backend
from hybrid_search.backends.base import IndexSpec
from hybrid_search.backends.server import documents, retry, sending
from hybrid_search.covering import DEFAULT_POLICY
from hybrid_search.encoder import Encoder
from hybrid_search.errors import IndexMissingError, ServerError
from hybrid_search.ingest import prepare, worker
from hybrid_search.ingest.documents import parse, source_hash
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.summary import Summary
from hybrid_search.passages import split
from tests import faults, live
from tests.conftest import DATA
from tests.faults import KINDS, TIMEOUT, Plan, Proxy, Third
from tests.program import run
from tests.scripted import Asked, Reply
from tests.servers import RELEASES, Running, start
from tests.servers.install import complete
from tests.servers.layout import free_port
from tests.tiny import TinyEncoder, entries, request, spec

pytestmark = pytest.mark.server

ROOT = Path(__file__).parent.parent
WORDS = 30
"""Of a turn: two or three turns make a passage."""

Call = dict[str, Any]


def call(number: int, version: str, turns: int) -> Call:
    """A call that has the word `version` in every turn."""
    said = (" ".join(f"word{number * turn * step % 997}" for step in range(1, WORDS + 1)) for turn in range(1, turns + 1))
    spoken = [{"speaker": "agent" if turn % 2 else "customer", "text": f"{version} {text}"} for turn, text in enumerate(said)]
    return {"id": f"call-{number:03d}", "turns": spoken, "sector": f"sector {number % 7}", "version": version}


def calls(version: str, turns: Callable[[int], int], count: int) -> list[Call]:
    return [call(number, version, turns(number)) for number in range(count)]


# What is on a server, read without the product


@dataclass(frozen=True, slots=True)
class Place:
    """An index and the server that it is to be on."""

    url: str
    index: str

    def asked(self, method: str, target: str, body: Any = None) -> Any:
        """What the server answers."""
        headers = {"content-type": "application/json", "accept": "application/json"}
        answer = faults.sent(self.url, Asked(method, target, headers, json.dumps(body).encode() if body else b""))
        assert answer.status == 200, answer
        return json.loads(answer.body)

    def held(self, index: str | None = None) -> dict[str, Call]:
        """Everything that is in the index, by its ``_id``."""
        path = f"/{quote(index or self.index)}"
        self.asked("POST", f"{path}/_refresh")
        found = self.asked("POST", f"{path}/_search", {"size": 10_000, "track_total_hits": True, "query": {"match_all": {}}})
        assert found["_shards"]["failed"] == 0
        assert len({hit["_index"] for hit in found["hits"]["hits"]}) <= 1
        held = {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}
        assert len(held) == found["hits"]["total"]["value"] == len(found["hits"]["hits"])
        return held

    def names(self) -> list[str]:
        """The indexes of this name, of any version."""
        return [each["index"] for each in self.asked("GET", f"/_cat/indices/{self.index}*?format=json&h=index")]

    def ingest(self, lines: Iterable[Call | bytes], url: str | None = None, encoder: Encoder | None = None, timeout: float = TIMEOUT) -> Summary:
        """Run the worker in this process, by way of `url`."""
        numbered = (Line("calls", number, each if isinstance(each, bytes) else json.dumps(each).encode()) for number, each in enumerate(lines, 1))
        with closing(open_backend(url or self.url, Access(timeout=timeout))) as backend:
            return worker.ingest(numbered, backend, encoder or TinyEncoder(), self.index, Path("rejected.jsonl"))


@pytest.fixture(params=live.URLS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with placed(request.param) as there:
        yield there


@contextmanager
def placed(url: str) -> Iterator[Place]:
    """An index that is not there yet, and will be gone afterwards."""
    there = Place(url, f"faults-{secrets.token_hex(4)}")
    try:
        yield there
    finally:
        for name in there.names():
            there.asked("DELETE", f"/{name}")


@pytest.fixture(autouse=True)
def _many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smaller blocks, so that a few hundred documents are many requests."""
    monkeypatch.setattr(worker, "BLOCK_PASSAGES", 32)
    monkeypatch.setattr(prepare, "LOOKUP_DOCUMENTS", 20)


def bare(source: Mapping[str, Any]) -> Call:
    """A passage without what differs from run to run, or may not be given back: the time of writing, and the vectors of its spans."""
    kept = {name: value for name, value in source.items() if name not in ("indexed_at", "spans")}
    return {**kept, "spans": [(span["start"], span["end"]) for span in source["spans"]]}


def whole(document: Call) -> dict[str, Call]:
    """All that a server is to hold of a document, by ``_id``."""
    return {f"{document['id']}#{entry.passage.ordinal}": bare(documents.source(entry, spec(), "")) for entry in entries(document)}


def sound(place: Place, good: Iterable[Call]) -> None:
    """The index holds the documents `good`, every one once and whole, with the text that it should have, and nothing else."""
    expected = {id_: source for document in good for id_, source in whole(document).items()}
    found = {id_: bare(source) for id_, source in place.held().items()}
    assert sorted(found) == sorted(expected)
    assert [id_ for id_ in expected if found[id_] != expected[id_]] == []


def honest(place: Place, ids: Sequence[str]) -> set[str]:
    """Which of the documents `ids` a new run would skip. Each of them is whole, and of one version."""
    with closing(open_backend(place.url)) as backend, backend.writer(place.index, spec()) as writer:
        known = writer.known(ids)
    held = list(place.held().values())
    for id_, version in known.items():
        passages = [source for source in held if source["document_id"] == id_]
        assert {source["source_hash"] for source in passages} == {version}
        assert [source["passages"] for source in passages] == [len(passages)] * len(passages)
    return set(known)


# A proxy that injures a third of the requests

BAD: dict[str, Callable[[int], Call | bytes]] = {
    "not JSON: ": lambda _: b'{"id": "bad',
    "no id: ": lambda _: b'{"text": "whose"}',
    "the text is empty": lambda number: {"id": f"bad-{number}", "text": " "},
    "metadata field 'sector' is a number here and a string": lambda number: call(number, "bad", 5) | {"sector": number},
    "the server refused it: .*Limit of total fields": lambda number: call(number, "bad", 5) | {f"field{number}x{each}": each for each in range(1100)},
}
"""Lines that are refused, by how the reason begins; the last one by the server alone."""


def mixed() -> tuple[list[Call | bytes], dict[int, str]]:
    """200 lines: 150 calls, second versions of 30 of them, shorter or longer, some close behind the first; and the reasons of 20 bad ones by number."""
    first = calls("first", lambda number: 3 + number % 4, 150)
    second = calls("second", lambda number: 3 + (number + 2) % 4, 90)[60:]
    lines: list[Call | bytes] = []
    refused: dict[int, str] = {}
    for number, good in enumerate([*first[:75], *reversed(second[:15]), *first[75:], *second[15:]]):
        if number % 9 == 4:
            reason, bad = list(BAD.items())[number % len(BAD)]
            lines.append(bad(900 + number))
            refused[len(lines)] = reason
        lines.append(good)
    return lines, refused


def good(lines: Sequence[Call | bytes], refused: Mapping[int, str]) -> list[Call]:
    return [line for number, line in enumerate(lines, 1) if isinstance(line, dict) and number not in refused]


def last(documents_: Iterable[Call]) -> list[Call]:
    """Without those that a later one replaces."""
    return list({each["id"]: each for each in documents_}.values())


def injured_by(proxy: Proxy) -> None:
    """Every kind of fault did happen, and to a third of the requests."""
    assert set(proxy.met) == {kind.__name__ for kind in KINDS}
    assert proxy.met.total() == pytest.approx(proxy.asked / 3, abs=2)


def test_every_good_document_is_there_once_and_every_bad_one_is_told_of(place: Place) -> None:
    lines, refused = mixed()
    assert (len(lines), len(refused)) == (200, 20)
    written = good(lines, refused)
    with Proxy(place.url, Third(seed=1)) as proxy:
        summary = place.ingest(lines, proxy.url)
    injured_by(proxy)
    sound(place, last(written))
    told = {each["line"]: each["reason"] for each in map(json.loads, Path("rejected.jsonl").read_text().splitlines())}
    assert sorted(told) == sorted(refused)
    assert all(re.match(refused[line], told[line]) for line in refused), told
    assert sorted(note["line"] for note in place.held(f"{place.index}-rejected").values()) == sorted(refused)
    assert (summary.read, summary.documents, summary.duplicates, summary.failed, summary.skipped) == (200, 180, 30, 20, 0)
    passages = [entry for document in written for entry in entries(document)]
    assert (summary.passages, summary.spans) == (len(passages), sum(entry.spans for entry in passages))


def test_new_versions_replace_the_old_ones_and_what_is_unchanged_is_skipped(place: Place) -> None:
    first = calls("first", lambda number: 2 + number % 8, 60)
    place.ingest(first)
    then = [*calls("second", lambda number: 9 - number % 8, 40), *first[40:]]
    with Proxy(place.url, Third(seed=2)) as proxy:
        summary = place.ingest(then, proxy.url)
    assert (summary.documents, summary.skipped, summary.failed) == (40, 20, 0)
    sound(place, then)


def at_first(*kinds: faults.Fault) -> Plan:
    """Whatever is asked suffers each of `kinds`, one after the other, before it succeeds."""
    before: Counter[tuple[str, str, bytes]] = Counter()
    lock = threading.Lock()

    def plan(asked: Asked) -> faults.Fault | None:
        key = (asked.method, asked.target, asked.body)
        with lock:
            left = [kind for kind in kinds if faults.fits(kind, asked)][before[key] :]
            before[key] += 1
        return left[0] if left else None

    return plan


def test_an_index_lives_and_dies_where_no_request_succeeds_at_once(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retry, "FIRST", 0.05)
    plan = at_first(faults.lost_after, faults.garbled, faults.unavailable)
    first, second = calls("first", lambda _: 8, 6), calls("second", lambda _: 3, 2)
    with Proxy(place.url, plan) as proxy, closing(open_backend(proxy.url, Access(timeout=TIMEOUT))) as backend:
        summary = place.ingest([*first, {"id": "bad"}, *second], proxy.url)
        assert (summary.documents, summary.duplicates, summary.failed) == (8, 2, 1)
        sound(place, [*second, *first[2:]])
        assert backend.describe(place.index).documents == 6
        assert len(place.held(f"{place.index}-rejected")) == 1
        asked = request("second word7")
        found = backend.candidates(place.index, asked)
        assert len(backend.complete(place.index, asked, list(found.semantic), found)) == len(place.held())
        with backend.writer(place.index, spec()) as writer:
            assert writer.delete(["call-000", "call-005"]) == 2
        sound(place, [second[1], *first[2:5]])
        assert reindex.copied(backend, place.index, None, {"m": "8"}, lambda _: None).documents == 4
        assert sorted(place.names()) == [f"{place.index}-000002", f"{place.index}-rejected"]
        backend.drop(place.index)
        assert place.names() == []
        with pytest.raises(IndexMissingError):
            backend.describe(place.index)
    told = [record.getMessage() for record in caplog.records if record.name.startswith("hybrid_search")]
    assert [each for each in told if not each.endswith(("trying again", "the last one wins"))] == []


def answers(place: Place, url: str) -> list[Any]:
    """All that reading gives."""
    told: list[Any] = []
    with closing(open_backend(url, Access(timeout=TIMEOUT))) as backend:
        for number in range(12):
            asked = request(f"second word{number} word{7 * number}")
            found = backend.candidates(place.index, asked)
            keys = [*found.lexical, *found.semantic]
            stored = [(each.key, each.bm25, each.tokens.codes.tobytes()) for each in backend.complete(place.index, asked, keys, found)]
            told += [stored, backend.contents(place.index, keys[:5]), backend.highlights(place.index, asked, keys[:5])]
        told += [backend.facets(place.index, request("first"), ["sector"]), backend.describe(place.index), backend.head(place.index)]
    return told


def test_what_is_asked_through_the_proxy_is_answered_as_without_it(place: Place) -> None:
    place.ingest([*calls("first", lambda number: 2 + number % 8, 40), *calls("second", lambda _: 5, 10)])
    with Proxy(place.url, Third(seed=3)) as proxy:
        assert answers(place, proxy.url) == answers(place, place.url)
    injured_by(proxy)


# A server that does not take everything


def ordinal(action: bytes) -> int:
    ((_, named),) = json.loads(action.splitlines()[0]).items()
    return int(named["_id"].rpartition("#")[2])


def never(taken: Callable[[bytes], bool], refusal: dict[str, Any]) -> Plan:
    """Of bulk requests only the actions that are `taken` are, whenever they come."""

    def refusing(forward: faults.Forward, asked: Asked, _: random.Random) -> Reply:
        return faults.divided(forward, asked, taken, refusal)

    return lambda asked: refusing if faults.called(asked) == "_bulk" else None


def test_a_server_that_stays_busy_is_one_error_and_nothing_half_written_passes_for_whole(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "PATIENCE", 1.0)
    documents_ = [*calls("first", lambda _: 1, 20), *calls("first", lambda _: 8, 40)[20:]]
    with Proxy(place.url, never(lambda action: ordinal(action) != 1, faults.REJECTED)) as proxy:
        with pytest.raises(
            ServerError, match=r"did not take \d+ passages .*'call-020#1'.*: .*the queue is full.* run the same command again"
        ) as told:
            place.ingest(documents_, proxy.url)
    assert told.value.status == 429
    ids = [each["id"] for each in documents_]
    assert honest(place, ids) == {f"call-{number:03d}" for number in range(20)}
    summary = place.ingest(documents_)
    assert (summary.skipped, summary.documents) == (20, 20)
    sound(place, documents_)


def test_a_document_of_which_one_passage_is_refused_leaves_nothing_behind_and_the_others_go_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "BLOCK_PASSAGES", 1)  # so that a document is refused when most of its passages were handed on long ago
    place.ingest(calls("first", lambda _: 8, 6))
    then = calls("second", lambda _: 5, 6)
    refusal = {"status": 400, "error": {"type": "document_parsing_exception", "reason": "not this one"}}
    with Proxy(place.url, never(lambda action: b'"index"' not in action or b'"call-003#1"' not in action.splitlines()[0], refusal)) as proxy:
        summary = place.ingest(then, proxy.url)
    assert (summary.documents, summary.failed) == (5, 1)
    assert summary.passages == sum(len(whole(each)) for each in then) - len(whole(then[3]))
    (line,) = Path("rejected.jsonl").read_text().splitlines()
    assert "the server refused it: document_parsing_exception: not this one" in json.loads(line)["reason"]
    sound(place, [each for each in then if each["id"] != "call-003"])
    assert place.ingest(then).documents == 1
    sound(place, then)
