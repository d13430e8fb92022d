"""Servers that are lost, slow, busy, and take half of what they are sent: afterwards every document is there exactly once, or an error says so."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import reindex
from hybrid_search.access import Access
from hybrid_search.backends import open_backend
from hybrid_search.backends.base import IndexSpec
from hybrid_search.backends.server import retry
from hybrid_search.covering import DEFAULT_POLICY
from hybrid_search.encoder import Encoder
from hybrid_search.errors import IndexMissingError, ServerError
from hybrid_search.ingest import prepare, sources, worker
from tests import faults, live
from tests.conftest import DATA
from tests.faults import KINDS, TIMEOUT, Plan, Proxy, Third
from tests.places import Call, Place, call, calls, outline, placed, skipped, sound, whole
from tests.program import run
from tests.scripted import Asked, Reply
from tests.servers.layout import free_port
from tests.tiny import entries, request, spec

pytestmark = pytest.mark.server


@pytest.fixture(params=live.URLS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with placed(request.param) as there:
        yield there


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smaller blocks, so that a few hundred documents are many requests, and shorter pauses between their tries."""
    monkeypatch.setattr(worker, "BLOCK_PASSAGES", 48)
    monkeypatch.setattr(prepare, "LOOKUP_DOCUMENTS", 40)
    monkeypatch.setattr(retry, "FIRST", 0.1)


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
    """200 lines: 150 calls, second versions of 30 of them, shorter or longer, some close behind the first; and why 20 are refused, by number."""
    first = calls("first", lambda number: 3 + number % 4, 150)
    second = calls("second", lambda number: 3 + (number + 2) % 4, 90)[60:]
    lines: list[Call | bytes] = []
    refused: dict[int, str] = {}
    for number, good in enumerate([*first[:75], *reversed(second[:15]), *first[75:], *second[15:]]):
        lines.append(good)
        for kind, (reason, bad) in enumerate(BAD.items()):
            if number % 45 == 20:
                lines.append(bad(900 + number + kind))
                refused[len(lines)] = reason
    return lines, refused


def good(lines: Sequence[Call | bytes], refused: Mapping[int, str]) -> list[Call]:
    return [line for number, line in enumerate(lines, 1) if isinstance(line, dict) and number not in refused]


def last(documents_: Iterable[Call]) -> list[Call]:
    """Without those that a later one replaces."""
    return list({each["id"]: each for each in documents_}.values())


def injured_by(proxy: Proxy) -> None:
    """Every kind of fault did happen, and to a third of the requests."""
    print(f"{proxy.asked} requests, and {proxy.met}")
    assert set(proxy.met) == {kind.__name__ for kind in KINDS}
    assert proxy.met.total() == pytest.approx(proxy.asked / 3, abs=2)


def test_every_good_document_is_there_once_and_every_bad_one_is_told_of(place: Place, hurried: None) -> None:
    lines, refused = mixed()
    assert (len(lines), len(refused)) == (200, 20)
    written = good(lines, refused)
    with Proxy(place.url, Third(seed=1)) as proxy:
        summary = place.ingest(lines, proxy.url, timeout=TIMEOUT)
    injured_by(proxy)
    sound(place, last(written))
    told = {each["line"]: each["reason"] for each in map(json.loads, Path("rejected.jsonl").read_text().splitlines())}
    assert sorted(told) == sorted(refused)
    assert all(re.match(refused[line], told[line]) for line in refused), told
    assert sorted(note["line"] for note in place.held(f"{place.index}-rejected", sort=("line",)).values()) == sorted(refused)
    assert (summary.read, summary.documents, summary.duplicates, summary.failed, summary.skipped) == (200, 180, 30, 20, 0)
    passages = [entry for document in written for entry in entries(document)]
    assert (summary.passages, summary.spans) == (len(passages), sum(entry.spans for entry in passages))


@pytest.mark.long
@pytest.mark.data
def test_two_thousand_calls_are_there_once(place: Place, real_encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """As users run it: the shipped model, blocks and pauses as they are. A bulk request may take a busy server seconds, so clients wait longer."""
    monkeypatch.setattr(faults, "LATE", 15.5)
    documents_ = [json.loads(line.data) for line in islice(sources.read([str(DATA / "calls_sgd" / "calls.jsonl.gz")]), 2000)]
    with Proxy(place.url, Third(seed=4)) as proxy:
        summary = place.ingest(documents_, proxy.url, real_encoder, timeout=15)
    injured_by(proxy)
    assert (summary.read, summary.documents, summary.failed) == (2000, 2000, 0)
    sound(place, documents_, partial(outline, made_for=IndexSpec.of(real_encoder.info, DEFAULT_POLICY)))
    assert place.ingest(documents_, encoder=real_encoder).skipped == 2000


def test_new_versions_replace_the_old_ones_and_what_is_unchanged_is_skipped(place: Place, hurried: None) -> None:
    first = calls("first", lambda number: 2 + number % 8, 60)
    place.ingest(first)
    then = [*calls("second", lambda number: 9 - number % 8, 40), *first[40:]]
    with Proxy(place.url, Third(seed=2)) as proxy:
        summary = place.ingest(then, proxy.url, timeout=TIMEOUT)
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
    monkeypatch.setattr(retry, "FIRST", 0.02)
    plan = at_first(faults.lost_after, faults.unavailable)
    first, second = calls("first", lambda _: 8, 6), calls("second", lambda _: 3, 2)
    with Proxy(place.url, plan) as proxy, closing(open_backend(proxy.url)) as backend:
        summary = place.ingest([*first, {"id": "bad"}, *second], proxy.url)
        assert (summary.documents, summary.duplicates, summary.failed) == (8, 2, 1)
        sound(place, [*second, *first[2:]])
        assert backend.describe(place.index).documents == 6
        assert len(place.held(f"{place.index}-rejected", sort=("line",))) == 1
        asked = request("second word7")
        found = backend.candidates(place.index, asked)
        assert len(backend.complete(place.index, asked, list(found.semantic), found)) == len(place.held())
        with backend.writer(place.index, spec()) as writer:
            assert writer.delete(["call-000", "call-005"]) == 2
        sound(place, [second[1], *first[2:5]])
        assert reindex.copied(backend, place.index, None, {"m": "8"}, lambda _: None).documents == 4
        assert place.names() == [f"{place.index}-000002", f"{place.index}-rejected"]
        backend.drop(place.index)
        assert place.names() == []
        with pytest.raises(IndexMissingError):
            backend.describe(place.index)
    told = [record.getMessage() for record in caplog.records if record.name.startswith("hybrid_search")]
    passing = ("trying again", "the last one wins", "waiting for it, up to 600 s")  # the last, and its end, where the machine is busy
    assert [each for each in told if not each.endswith(passing) and "answers again, after" not in each] == []


def answers(place: Place, url: str) -> list[Any]:
    """All that reading gives."""
    told: list[Any] = []
    with closing(open_backend(url, Access(timeout=TIMEOUT))) as backend:
        for number in range(9):
            asked = request(f"second word{number} word{7 * number}")
            found = backend.candidates(place.index, asked)
            keys = [*found.lexical, *found.semantic]
            stored = [(each.key, each.bm25, each.tokens.codes.tobytes()) for each in backend.complete(place.index, asked, keys, found)]
            told += [stored, backend.contents(place.index, keys[:5]), backend.highlights(place.index, asked, keys[:5])]
        told += [backend.facets(place.index, request("first"), ["sector"]), backend.describe(place.index), backend.head(place.index)]
    return told


def test_what_is_asked_through_the_proxy_is_answered_as_without_it(place: Place, hurried: None) -> None:
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


def test_a_server_that_stays_busy_is_one_error_and_nothing_half_written_passes_for_whole(place: Place) -> None:
    documents_ = [*calls("first", lambda _: 1, 20), *calls("first", lambda _: 8, 40)[20:]]
    with (
        Proxy(place.url, never(lambda action: ordinal(action) != 1, faults.REJECTED)) as proxy,
        pytest.raises(ServerError, match=r"did not take \d+ passages .*'call-020#1'.*: .*the queue is full.* run the same command again") as told,
    ):
        place.ingest(documents_, proxy.url, patience=1.0)
    assert told.value.status == 429
    assert skipped(place, documents_) == {f"call-{number:03d}" for number in range(20)}
    summary = place.ingest(documents_)
    assert (summary.skipped, summary.documents) == (20, 20)
    sound(place, documents_)


def test_a_document_of_which_one_passage_is_refused_leaves_nothing_behind_and_the_others_go_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_server_that_is_down_is_one_error_after_a_bounded_wait(tmp_path: Path) -> None:
    source = tmp_path / "calls.jsonl"
    source.write_text(json.dumps(call(0, "first", 2)) + "\n")
    url = f"opensearch+http://127.0.0.1:{free_port()}"
    begun = time.monotonic()
    ran = run("--index", "calls", "--url", url, str(source), module="hybrid_search.ingest")
    assert time.monotonic() - begun < 60
    assert re.match(rf"no answer from {re.escape(url)} to GET /calls/_mapping: Connection refused .*\(after 6 tries", ran.error), ran.error
    assert ran.out == ""
    assert not Path("calls.rejected.jsonl").exists()
