"""Ingests that fail again and again, at every seam, in random order.

In the end each good document is in the index once, and each bad one in the rejects file. The seeds
are printed. ``make soak`` runs it for `SOAK_MINUTES` (10), on servers through a proxy that fails; a
short one is among the ordinary tests.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest

from hybrid_search.backends.embedded.backend import EmbeddedBackend
from tests.helpers import live_servers, server_index
from tests.helpers.changed_index import list_codes_files, list_records
from tests.helpers.fake_server import HttpRequest
from tests.helpers.fault_proxy import TIMEOUT, EveryThirdRequest, Fault, Proxy, lose_request
from tests.helpers.ingest_process import POISON, start_ingest
from tests.helpers.server_index import Call, RawIndex, make_call, temporary_index
from tests.helpers.tiny_encoder import fill_index

pytestmark = pytest.mark.faults

MINUTES = float(os.environ.get("SOAK_MINUTES", "10"))
GOOD = 60
TRIES = 40
"""Attempts of one round at most, before one may run to its end."""

Chance = random.Random  # noqa: S311 (no secret)
REJECTS = Path("calls.rejected.jsonl")


# What is ingested


@dataclass(frozen=True, slots=True)
class Corpus:
    """Lines, the documents expected in the end by id, and the reasons of refused lines."""

    lines: list[bytes]
    good: Mapping[str, Call]
    refused: Mapping[int, str]


BAD: Mapping[str, Callable[[int], Call | bytes]] = {
    "not JSON: ": lambda _: b'{"id": "bad',
    "not UTF-8": lambda _: b'{"id": "bad\xff", "text": "x"}',
    "no id": lambda _: {"text": "whose"},
    "the text is empty": lambda number: {"id": f"bad-{number}", "text": " "},
    "metadata field 'sector' is a number here and a string": lambda number: (
        make_call(number, "bad", 5) | {"sector": number}
    ),
    "the encoder fails at this text: ValueError": lambda number: make_poisoned_call(number),
}


def make_poisoned_call(number: int) -> Call:
    """Return a call whose fourth turn breaks the encoder, after some of its passages."""
    document = make_call(number, "bad", 6)
    document["turns"][3]["text"] += f" {POISON}"
    return document


def make_corpus(chance: Chance) -> Corpus:
    """Return calls of one to seven turns, some in two versions, and bad lines among them."""
    lines: list[bytes] = []
    good: dict[str, Call] = {}
    refused: dict[int, str] = {}
    for number in range(GOOD):
        again = number > 10 and chance.random() < 0.2
        document = make_call(
            chance.randrange(number) if again else number,
            chance.choice(["first", "second"]),
            chance.randrange(1, 8),
        )
        good[document["id"]] = document
        lines.append(json.dumps(document).encode())
        if number > 3 and chance.random() < 0.2:
            reason, bad = chance.choice(list(BAD.items()))
            wrong = bad(500 + number)
            lines.append(wrong if isinstance(wrong, bytes) else json.dumps(wrong).encode())
            refused[len(lines)] = reason
    return Corpus(lines, good, refused)


# Where it goes


class Store(Protocol):
    """Where the documents go."""

    @property
    def url(self) -> str:
        """Return the URL for the command."""
        ...

    @property
    def index(self) -> str:
        """Return the name of the index."""
        ...

    @property
    def allowed_statuses(self) -> tuple[int, ...]:
        """Return exit statuses that an attempt may have besides its own."""
        ...

    def verify(self, good: Sequence[Call]) -> None:
        """Fail unless the index has exactly these documents, each once, as after a clean ingest."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddedStore:
    folder: Path
    index: str = "calls"
    allowed_statuses: tuple[int, ...] = ()

    @property
    def url(self) -> str:
        return f"embedded:{self.folder}"

    def verify(self, good: Sequence[Call]) -> None:
        clean = self.folder.with_name(f"{self.folder.name}-clean")
        with closing(EmbeddedBackend(clean)) as backend:
            fill_index(backend, good, clean / "rejected.jsonl")
        assert content(self.folder) == content(clean)
        shutil.rmtree(clean)


def content(folder: Path) -> list[tuple[Any, ...]]:
    """Return all passages with documents, offsets, texts and codes, without row numbers."""
    with closing(EmbeddedBackend(folder)) as backend:
        assert not [row for row in backend.iterate_passages("calls", full=True) if row.faults]
    index = folder / "calls.index"
    codes = {
        passage: file.read(passage)
        for file in list_codes_files(index)
        for passage in file.passages.tolist()
    }
    rows = [
        (*astuple(replace(found, passage=0, document=0)), codes[found.passage])
        for found in list_records(index)
    ]
    return sorted(rows, key=lambda row: (row[3], row[2]))


@dataclass(frozen=True, slots=True)
class ServerStore:
    place: RawIndex
    url: str
    allowed_statuses: tuple[int, ...] = (2,)

    @property
    def index(self) -> str:
        return self.place.index

    def verify(self, good: Sequence[Call]) -> None:
        server_index.assert_index_holds(self.place, good)


# What goes wrong


@dataclass(slots=True)
class Round:
    """One corpus into one store, attempt by attempt."""

    store: Store
    corpus: Corpus
    chance: Chance
    source: Path
    options: list[str]
    fault_counts: Counter[str] = field(default_factory=Counter)

    def write_source(self, size: int | None = None) -> None:
        """Write the source, or only a beginning of it, as if it were still being written.

        A whole source that is there already stays the same file.
        """
        data = b"".join(line + b"\n" for line in self.corpus.lines)
        packed = gzip.compress(data, mtime=0) if self.source.suffix == ".gz" else data
        if size is not None or not self.source.exists() or self.source.read_bytes() != packed:
            self.source.write_bytes(packed if size is None else packed[: size % len(packed)])

    def start(self, **env: str) -> subprocess.Popen[str]:
        """Start an attempt with an encoder that breaks at the poison."""
        return self._start_ingest(*self.options, str(self.source), BREAKS="yes", **env)

    def start_retry(self) -> subprocess.Popen[str]:
        """Start a retry of the refused documents with an encoder that works."""
        return self._start_ingest("--retry", str(REJECTS))

    def _start_ingest(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        pace = {
            "SLOW": f"{self.chance.uniform(0, 0.05):.3f}",
            "BLOCK": str(self.chance.choice([3, 16, 64])),
        }
        where = ["--url", self.store.url, "--index", self.store.index, "--rejects", str(REJECTS)]
        timeout = {"HYBRID_SEARCH_TIMEOUT": str(TIMEOUT)}
        return start_ingest(*where, "--patience", "60", *arguments, env={**pace, **timeout, **env})

    def wait_for_summary(
        self, process: subprocess.Popen[str], *statuses: int
    ) -> dict[str, Any] | None:
        """Return the summary, if there is one.

        Fails for an unexpected status, or an error that is not one line. A server may be away when
        the process starts.
        """
        stdout, err = process.communicate(timeout=180)
        assert process.returncode in (*statuses, *self.store.allowed_statuses), err
        assert "Traceback" not in err, err
        if process.returncode == 2:
            assert len([line for line in err.splitlines() if line.startswith("error: ")]) == 1, err
        if process.returncode not in (0, 1):
            return None
        summary: dict[str, Any] = json.loads(stdout.splitlines()[-1])
        assert summary["read"] == summary["documents"] + summary["skipped"] + summary["failed"]
        assert process.returncode == (summary["rejected"] is not None)
        return summary

    def run_to_end(self, begin: Callable[[], subprocess.Popen[str]]) -> None:
        """Let an attempt run to its end; start another if the server was away."""
        for _ in range(5):
            if summary := self.wait_for_summary(begin(), 0, 1):
                assert not summary["stopped"]
                return
        raise AssertionError("five attempts in a row had no end")


def kill_ingest(round_: Round) -> None:
    process = round_.start()
    time.sleep(round_.chance.uniform(0.3, 2.0))
    process.kill()
    process.communicate()


def terminate_ingest(round_: Round) -> None:
    process = round_.start()
    time.sleep(round_.chance.uniform(0.3, 2.0))
    process.terminate()
    round_.wait_for_summary(
        process, 0, 1, -15
    )  # by the signal itself where it came before the command had begun


def terminate_ingest_twice(round_: Round) -> None:
    process = round_.start(SLOW="0.5")
    time.sleep(round_.chance.uniform(0.5, 1.5))
    process.terminate()
    time.sleep(0.1)
    process.terminate()
    round_.wait_for_summary(process, 0, 1, -15)


def fail_encoder(round_: Round) -> None:
    round_.wait_for_summary(
        round_.start(ENCODER_FAILS_AFTER=str(round_.chance.randrange(30))), 0, 1, 2
    )


def truncate_source(round_: Round) -> None:
    """Cut the source in the middle of a line, or of the gzip data."""
    round_.write_source(round_.chance.randrange(10**9))
    try:
        round_.wait_for_summary(round_.start(), 0, 1)
    finally:
        round_.write_source()


def fill_disk(round_: Round) -> None:
    round_.wait_for_summary(
        round_.start(LARGEST=str(round_.chance.randrange(20_000, 400_000))), 0, 1, 2
    )


FAULTS = (
    kill_ingest,
    terminate_ingest,
    terminate_ingest_twice,
    fail_encoder,
    truncate_source,
    fill_disk,
)


# The proof


def run_with_faults(round_: Round, end: float) -> None:
    """Run attempts that fail until `end`, each kind in turn, then one that runs to its end."""
    bag: list[Callable[[Round], None]] = []
    round_.write_source()
    for _ in range(round_.chance.randrange(3, TRIES)):
        if time.monotonic() > end:
            break
        bag = bag or round_.chance.sample(FAULTS, len(FAULTS))
        fault = bag.pop()
        round_.fault_counts[fault.__name__] += 1
        fault(round_)
    round_.run_to_end(round_.start)


def verify_round(round_: Round) -> None:
    """Check that every good document is indexed once and every bad one rejected once.

    Good documents are as after a clean ingest; bad ones have their line and reason.
    """
    round_.store.verify(list(round_.corpus.good.values()))
    check_rejects(round_, round_.corpus.refused)
    assert not Path("done.json").exists()


def check_rejects(round_: Round, refused: Mapping[int, str]) -> None:
    """Check that the rejects file has these lines, byte for byte, and the reasons."""
    entries = [json.loads(line) for line in REJECTS.read_text().splitlines()] if refused else []
    assert sorted(entry["line"] for entry in entries) == sorted(refused)
    for entry in entries:
        assert re.match(refused[entry["line"]], entry["reason"]), entry
        assert (
            entry["document"].encode("utf-8", "surrogateescape")
            == round_.corpus.lines[entry["line"] - 1]
        )


def retry_rejected(round_: Round) -> None:
    """Retry the refused documents with a working encoder, after a process that is killed.

    The documents that are bad in themselves stay in the file.
    """
    if not round_.corpus.refused:
        return
    process = round_.start_retry()
    time.sleep(round_.chance.uniform(0.3, 1.5))
    process.kill()
    process.communicate()
    round_.run_to_end(round_.start_retry)
    mended = {line for line, reason in round_.corpus.refused.items() if "encoder" in reason}
    round_.store.verify(
        [
            *round_.corpus.good.values(),
            *(json.loads(round_.corpus.lines[line - 1]) for line in mended),
        ]
    )
    check_rejects(
        round_,
        {line: reason for line, reason in round_.corpus.refused.items() if line not in mended},
    )


def soak(stores: Callable[[int], AbstractContextManager[Store]], minutes: float) -> None:
    """Run rounds for this time, at least one."""
    end, seed, rounds = time.monotonic() + minutes * 60, random.randrange(10**6), 0  # noqa: S311
    fault_counts: Counter[str] = Counter()
    while not rounds or time.monotonic() < end:
        print(f"round of seed {seed + rounds}")
        chance = Chance(seed + rounds)
        with stores(seed + rounds) as store:
            options = ["--checkpoint", "done.json"] if chance.random() < 0.7 else []
            round_ = Round(
                store,
                make_corpus(chance),
                chance,
                Path(chance.choice(["calls.jsonl", "calls.jsonl.gz"])),
                options,
                fault_counts,
            )
            REJECTS.unlink(missing_ok=True)
            run_with_faults(round_, end)
            verify_round(round_)
            retry_rejected(round_)
        rounds += 1
    print(f"{rounds} rounds, {fault_counts.total()} faults: {dict(fault_counts)}")


@contextmanager
def open_embedded_store(seed: int) -> Iterator[Store]:
    yield EmbeddedStore(Path(f"store-{seed}"))


@contextmanager
def open_server_store(url: str, seed: int) -> Iterator[Store]:
    """Yield a store behind a proxy that damages a third of the requests.

    The proxy is also away for three seconds of every twenty.
    """
    third = EveryThirdRequest(seed)

    def plan(request: HttpRequest) -> Fault | None:
        return lose_request if time.monotonic() % 20 < 3 else third(request)

    with temporary_index(url) as place, Proxy(place.url, plan, seed) as proxy:
        yield ServerStore(place, proxy.url)
        print(f"{proxy.request_count} requests, and {dict(proxy.fault_counts)}")


PLACES = ["embedded", *live_servers.SERVERS]


def test_a_short_soak_of_the_embedded_store() -> None:
    soak(open_embedded_store, 0.1)


@pytest.mark.long
@pytest.mark.parametrize("where", PLACES)
def test_a_long_soak(where: str) -> None:
    soak(
        open_embedded_store if where == "embedded" else partial(open_server_store, where),
        MINUTES / len(PLACES),
    )
