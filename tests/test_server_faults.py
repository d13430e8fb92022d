"""Servers that are lost, slow, busy and half answering, workers and servers that are killed: afterwards every document is there exactly once."""

from __future__ import annotations

import itertools
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from hybrid_search import reindex
from hybrid_search.access import Access
from hybrid_search.backends import open_backend
from hybrid_search.backends.server import documents, retry, sending
from hybrid_search.encoder import Encoder
from hybrid_search.errors import IndexMissingError, ServerError
from hybrid_search.ingest import prepare, worker
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.summary import Summary
from tests import faults, live
from tests.faults import KINDS, TIMEOUT, Plan, Proxy, Third
from tests.program import run
from tests.scripted import Asked, Reply
from tests.servers import RELEASES, Running, layout, start
from tests.servers.install import complete
from tests.servers.layout import free_port
from tests.tiny import TinyEncoder, entries, request, spec

pytestmark = pytest.mark.server

skip_without_servers = pytest.mark.skipif(not os.environ.get("HYBRID_SEARCH_TEST_URLS"), reason="HYBRID_SEARCH_TEST_URLS names no server")

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


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smaller blocks, so that a few hundred documents are many requests, and shorter pauses between their tries."""
    monkeypatch.setattr(worker, "BLOCK_PASSAGES", 32)
    monkeypatch.setattr(prepare, "LOOKUP_DOCUMENTS", 20)
    monkeypatch.setattr(retry, "FIRST", 0.1)


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


def skipped(place: Place, documents_: Iterable[Call]) -> set[str]:
    """Which of `documents_` a new run would skip. Whatever passes for whole is, and of one version."""
    hashes = {each["id"]: entries(each)[0].source_hash for each in documents_}
    with closing(open_backend(place.url)) as backend, backend.writer(place.index, spec()) as writer:
        known = writer.known(list(hashes))
    held = list(place.held().values())
    for id_, version in known.items():
        passages = [source for source in held if source["document_id"] == id_]
        assert {source["source_hash"] for source in passages} == {version}
        assert [source["passages"] for source in passages] == [len(passages)] * len(passages)
    return {id_ for id_ in hashes if known.get(id_) == hashes[id_]}


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
    print(proxy.asked, proxy.met)
    assert set(proxy.met) == {kind.__name__ for kind in KINDS}
    assert proxy.met.total() == pytest.approx(proxy.asked / 3, abs=2)


def test_every_good_document_is_there_once_and_every_bad_one_is_told_of(place: Place, hurried: None) -> None:
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


def test_new_versions_replace_the_old_ones_and_what_is_unchanged_is_skipped(place: Place, hurried: None) -> None:
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


def test_an_index_lives_and_dies_where_no_request_succeeds_at_once(place: Place, hurried: None, caplog: pytest.LogCaptureFixture) -> None:
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


def test_a_server_that_stays_busy_is_one_error_and_nothing_half_written_passes_for_whole(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "PATIENCE", 1.0)
    documents_ = [*calls("first", lambda _: 1, 20), *calls("first", lambda _: 8, 40)[20:]]
    with (
        Proxy(place.url, never(lambda action: ordinal(action) != 1, faults.REJECTED)) as proxy,
        pytest.raises(ServerError, match=r"did not take \d+ passages .*'call-020#1'.*: .*the queue is full.* run the same command again") as told,
    ):
        place.ingest(documents_, proxy.url)
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
    urls = [f"{engine}+http://127.0.0.1:{free_port()}" for engine in ("opensearch", "elasticsearch")]
    begun = time.monotonic()
    with ThreadPoolExecutor(len(urls)) as pool:
        told = list(pool.map(lambda url: run("--index", "calls", "--url", url, str(source), module="hybrid_search.ingest"), urls))
    assert time.monotonic() - begun < 60
    for url, ran in zip(urls, told, strict=True):
        assert re.match(rf"no answer from {re.escape(url)} to GET /calls/_mapping: Connection refused .*\(after 6 tries", ran.error), ran.error
        assert ran.out == ""
    assert not Path("calls.rejected.jsonl").exists()


# Workers that are killed

WORKER = """
import json, sys
from pathlib import Path
from hybrid_search.access import Access
from hybrid_search.backends import open_backend
from hybrid_search.errors import HybridSearchError
from hybrid_search.ingest import prepare, sources, worker
from tests.tiny import TinyEncoder

def say(number):
    print(number, file=sys.stderr, flush=True)

url, index, source = sys.argv[1:]
worker.BLOCK_PASSAGES, prepare.LOOKUP_DOCUMENTS = 16, 20
say(0)
try:
    lines, backend = sources.read([source]), open_backend(url, Access())
    summary = worker.ingest(lines, backend, TinyEncoder(), index, Path("rejected.jsonl"), report=lambda so_far: say(so_far.passages))
except HybridSearchError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)
print(json.dumps(summary.to_dict()))
"""
"""The command ``ingest`` with the tiny encoder. It says on standard error how many passages it has written."""


def tiny_worker(place: Place, source: str) -> list[str]:
    return [sys.executable, "-c", WORKER, place.url, place.index, source]


def real_worker(place: Place, source: str) -> list[str]:
    return [sys.executable, "-m", "hybrid_search.ingest", "--device", "cpu", "--url", place.url, "--index", place.index, source]


@contextmanager
def begun(command: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker as a process, which is killed if it still runs at the end of the block. What it says is in the files ``out`` and ``err``."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[bytes], folder: Path) -> Any:
    """The summary of a worker, waited for."""
    assert process.wait(timeout=900) == 0, (folder / "err").read_text()[-3000:]
    return json.loads((folder / "out").read_text().splitlines()[-1])


def until(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> bool:
    """Wait until it `holds`; False where the worker ended before that."""
    while not holds():
        if process.poll() is not None:
            return False
        time.sleep(0.02)
    return True


def killed_at_times(place: Place, folder: Path, kills: int, versions: Iterable[Sequence[Call]]) -> None:
    """Ingest one of the `versions` of some documents after the other by workers that are killed at random moments, so many in all.

    Of each version one worker is left to end; afterwards all is there. Before that no document passes for whole that is not.
    """
    chance, source = random.Random(), folder / "calls.jsonl"  # noqa: S311
    for documents_ in versions:
        source.write_text("".join(json.dumps(each) + "\n" for each in documents_))
        missing = {each["id"]: len(whole(each)) for each in documents_}
        while kills and missing:
            kills -= killed(place, folder, chance, chance.randrange(sum(missing.values())))
            known = skipped(place, documents_) if place.names() else set()
            missing = {id_: passages for id_, passages in missing.items() if id_ not in known}
        with begun(tiny_worker(place, str(source)), folder) as process:
            summary = ended(process, folder)
        assert summary["read"] == summary["documents"] + summary["skipped"] == len(documents_)
        assert summary["documents"] == len(missing)
        sound(place, documents_)
        if not kills:
            return


def killed(place: Place, folder: Path, chance: random.Random, passages: int) -> bool:
    """Whether a worker could be killed when it had written so many passages, before it ended."""
    with begun(tiny_worker(place, str(folder / "calls.jsonl")), folder) as process:
        until(partial(wrote, folder, passages), process)
        pause = chance.uniform(0, 0.2)
        time.sleep(pause)
        running = process.poll() is None
    print(f"killed {pause:.3f} s after {passages} passages" if running else "ended before it could be killed")
    return running


def wrote(folder: Path, passages: int) -> bool:
    """Whether the worker says that it has written so many."""
    told = [line for line in (folder / "err").read_text().splitlines() if line.isdecimal()]
    return bool(told) and int(told[-1]) >= passages


def versions(documents_: int) -> Iterator[list[Call]]:
    """Versions of the same calls, each call now shorter, now longer."""
    for number in itertools.count():
        yield calls(f"version{number}", partial(turns, number), documents_)


def turns(version: int, call_: int) -> int:
    return 2 + (call_ + 3 * version) % 7


def test_a_worker_that_is_killed_at_any_moment_is_completed_by_the_same_command(place: Place, tmp_path: Path) -> None:
    each = versions(50)
    place.ingest(next(each))
    killed_at_times(place, tmp_path, 3, each)


@pytest.mark.long
def test_a_worker_that_is_killed_at_twenty_moments_is_completed_by_the_same_command(place: Place, tmp_path: Path) -> None:
    killed_at_times(place, tmp_path, 20, versions(120))


# Servers that are killed


@contextmanager
def own(name: str) -> Iterator[Running]:
    """A server that nobody else uses."""
    if not complete(RELEASES[name]):
        pytest.skip(f"{name} is not fetched: make test-servers does it")
    with start(name) as server:
        yield server


def outlives(name: str, folder: Path, kills: int, documents_: Sequence[Call]) -> None:
    """A worker ingests `documents_`, and its server is killed so many times meanwhile and started again on the same data."""
    chance, source = random.Random(), folder / "calls.jsonl"  # noqa: S311
    source.write_text("".join(json.dumps(each) + "\n" for each in documents_))
    slice_ = sum(len(whole(each)) for each in documents_) // (kills + 1)
    with own(name) as server:
        place = Place(f"{server.test_url}&shards=2", "calls")
        with begun(tiny_worker(place, str(source)), folder) as process:
            for number in range(kills):
                assert until(partial(wrote, folder, slice_ * number + chance.randrange(slice_)), process)
                time.sleep(chance.uniform(0, 0.2))
                assert process.poll() is None
                server.kill()
                time.sleep(chance.uniform(0, 2))
                server.restart()
            summary = ended(process, folder)
        assert (summary["documents"], summary["failed"]) == (len(documents_), 0)
        sound(place, documents_)
        assert place.ingest(documents_).skipped == len(documents_)


@skip_without_servers
def test_a_worker_outlives_a_server_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "HEAP", ("-Xms512m", "-Xmx512m", "-XX:TieredStopAtLevel=1"))  # it starts in half of the time
    outlives("opensearch-3.5.0", tmp_path, 1, next(versions(150)))


@pytest.mark.long
@skip_without_servers
@pytest.mark.parametrize("name", ["opensearch-3.5.0", "elasticsearch-9.5.3"])
def test_a_worker_outlives_a_server_that_is_killed_five_times(name: str, tmp_path: Path) -> None:
    outlives(name, tmp_path, 5, next(versions(500)))
