"""One ingest after the other that fails, at every seam and in no order: in the end each good document is there once, each bad one is told of.

The seeds are printed. ``make soak`` runs it for `SOAK_MINUTES` (10), on servers through a proxy that fails; a short one is among the ordinary tests.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest

from hybrid_search.backends.embedded.backend import EmbeddedBackend
from tests import live, places
from tests.command import POISON, ingesting
from tests.faults import TIMEOUT, Fault, Proxy, Third, lost_before
from tests.places import Call, Place, call, placed
from tests.scripted import Asked
from tests.tiny import fill

MINUTES = float(os.environ.get("SOAK_MINUTES", "10"))
GOOD = 60
TRIES = 40
"""Attempts of one round, at most, before one is left to end."""

Chance = random.Random
REJECTS = Path("calls.rejected.jsonl")


# What is ingested


@dataclass(frozen=True, slots=True)
class Corpus:
    """Lines, the documents that are to be there in the end by their ids, and why others are refused, by line."""

    lines: list[bytes]
    good: Mapping[str, Call]
    refused: Mapping[int, str]


BAD: Mapping[str, Callable[[int], Call | bytes]] = {
    "not JSON: ": lambda _: b'{"id": "bad',
    "not UTF-8: byte 0xff": lambda _: b'{"id": "bad\xff", "text": "x"}',
    "no id: ": lambda _: {"text": "whose"},
    "the text is empty": lambda number: {"id": f"bad-{number}", "text": " "},
    "metadata field 'sector' is a number here and a string": lambda number: call(number, "bad", 5) | {"sector": number},
    "the encoder fails at this text: ValueError: an odd shape": lambda number: poisoned(number),
}


def poisoned(number: int) -> Call:
    """A call whose fourth turn breaks the encoder, so that some passages of it are encoded before."""
    made = call(number, "bad", 6)
    made["turns"][3]["text"] += f" {POISON}"
    return made


def corpus(chance: Chance) -> Corpus:
    """Calls of one to seven turns, some in two versions, and bad lines among them."""
    lines: list[bytes] = []
    good: dict[str, Call] = {}
    refused: dict[int, str] = {}
    for number in range(GOOD):
        again = number > 10 and chance.random() < 0.2
        made = call(chance.randrange(number) if again else number, chance.choice(["first", "second"]), chance.randrange(1, 8))
        good[made["id"]] = made
        lines.append(json.dumps(made).encode())
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
        """As the command takes it."""
        ...

    @property
    def index(self) -> str:
        """Its name there."""
        ...

    @property
    def away(self) -> tuple[int, ...]:
        """Statuses that an attempt may have besides its own."""
        ...

    def verify(self, good: Sequence[Call]) -> None:
        """Fail unless exactly those documents are there, each once and as a clean ingest would have them."""
        ...


@dataclass(frozen=True, slots=True)
class Embedded:
    folder: Path
    index: str = "calls"
    away: tuple[int, ...] = ()

    @property
    def url(self) -> str:
        return f"embedded:{self.folder}"

    def verify(self, good: Sequence[Call]) -> None:
        clean = self.folder.with_name(f"{self.folder.name}-clean")
        with closing(EmbeddedBackend(clean)) as backend:
            fill(backend, good, clean / "rejected.jsonl")
        assert content(self.folder) == content(clean)
        shutil.rmtree(clean)


def content(folder: Path) -> list[tuple[Any, ...]]:
    """All passages with their documents, offsets, texts and codes, without the numbers that rows have."""
    with closing(sqlite3.connect(folder / "calls.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute("INSERT INTO texts (texts, rank) VALUES ('integrity-check', 1)")
        (orphans,) = connection.execute("SELECT count(*) FROM passages WHERE document NOT IN (SELECT document FROM documents)").fetchone()
        assert orphans == 0
        return connection.execute(
            "SELECT id, source_hash, passages, metadata, ordinal, start, spans, layout, text, data FROM documents JOIN passages USING (document) "
            "JOIN texts ON texts.rowid = passage JOIN tokens USING (passage) ORDER BY id, ordinal"
        ).fetchall()


@dataclass(frozen=True, slots=True)
class OnServer:
    place: Place
    url: str
    away: tuple[int, ...] = (2,)

    @property
    def index(self) -> str:
        return self.place.index

    def verify(self, good: Sequence[Call]) -> None:
        places.sound(self.place, good)


# What goes wrong


@dataclass(slots=True)
class Round:
    """One corpus into one store, attempt by attempt."""

    store: Store
    corpus: Corpus
    chance: Chance
    source: Path
    options: list[str]
    met: Counter[str] = field(default_factory=Counter)

    def written(self, size: int | None = None) -> None:
        """Put the source there, or as much of it as somebody who writes it has got to; a whole one stays the same file."""
        data = b"".join(line + b"\n" for line in self.corpus.lines)
        packed = gzip.compress(data, mtime=0) if self.source.suffix == ".gz" else data
        if size is not None or not self.source.exists() or self.source.read_bytes() != packed:
            self.source.write_bytes(packed if size is None else packed[: size % len(packed)])

    def begun(self, **env: str) -> subprocess.Popen[str]:
        """An attempt, by an encoder that breaks at the poison."""
        return self._begun(*self.options, str(self.source), BREAKS="yes", **env)

    def retrying(self) -> subprocess.Popen[str]:
        """Another look at what was refused, by an encoder that works."""
        return self._begun("--retry", str(REJECTS))

    def _begun(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        pace = {"SLOW": f"{self.chance.uniform(0, 0.05):.3f}", "BLOCK": str(self.chance.choice([3, 16, 64]))}
        where = ["--url", self.store.url, "--index", self.store.index, "--rejects", str(REJECTS), "--patience", "60"]
        return ingesting(*where, *arguments, env={**pace, "HYBRID_SEARCH_TIMEOUT": str(TIMEOUT), **env})

    def ended(self, process: subprocess.Popen[str], *statuses: int) -> dict[str, Any] | None:
        """The summary, if there is one; fails for another status, or an error that is not one line. A server may be away when it is begun."""
        out, err = process.communicate(timeout=180)
        assert process.returncode in (*statuses, *self.store.away), err
        assert "Traceback" not in err, err
        if process.returncode == 2:
            assert len([line for line in err.splitlines() if line.startswith("error: ")]) == 1, err
        if process.returncode not in (0, 1):
            return None
        summary: dict[str, Any] = json.loads(out.splitlines()[-1])
        assert summary["read"] == summary["documents"] + summary["skipped"] + summary["failed"]
        assert process.returncode == (summary["rejected"] is not None)
        return summary

    def finished(self, begin: Callable[[], subprocess.Popen[str]]) -> None:
        """Let one attempt end: the next one, or where the server was away, one soon after."""
        for _ in range(5):
            if summary := self.ended(begin(), 0, 1):
                assert not summary["stopped"]
                return
        raise AssertionError("five attempts in a row had no end")


def killed(round_: Round) -> None:
    process = round_.begun()
    time.sleep(round_.chance.uniform(0.3, 2.0))
    process.kill()
    process.communicate()


def told_to_stop(round_: Round) -> None:
    process = round_.begun()
    time.sleep(round_.chance.uniform(0.3, 2.0))
    process.terminate()
    round_.ended(process, 0, 1, -15)  # by the signal itself where it came before the command had begun


def told_twice(round_: Round) -> None:
    process = round_.begun(SLOW="0.5")
    time.sleep(round_.chance.uniform(0.5, 1.5))
    process.terminate()
    time.sleep(0.1)
    process.terminate()
    round_.ended(process, 0, 1, -15)


def encoder_dies(round_: Round) -> None:
    round_.ended(round_.begun(ENCODER_FAILS_AFTER=str(round_.chance.randrange(30))), 0, 1, 2)


def source_is_cut_off(round_: Round) -> None:
    """In the middle of a line, or of what is packed."""
    round_.written(round_.chance.randrange(10**9))
    try:
        round_.ended(round_.begun(), 0, 1)
    finally:
        round_.written()


def disk_is_full(round_: Round) -> None:
    round_.ended(round_.begun(LARGEST=str(round_.chance.randrange(20_000, 400_000))), 0, 1, 2)


FAULTS = (killed, told_to_stop, told_twice, encoder_dies, source_is_cut_off, disk_is_full)


# The proof


def suffer(round_: Round, end: float) -> None:
    """Attempts that fail until `end`, each kind in its turn, and then one that is left to end."""
    bag: list[Callable[[Round], None]] = []
    round_.written()
    for _ in range(round_.chance.randrange(3, TRIES)):
        if time.monotonic() > end:
            break
        bag = bag or round_.chance.sample(FAULTS, len(FAULTS))
        fault = bag.pop()
        round_.met[fault.__name__] += 1
        fault(round_)
    round_.finished(round_.begun)


def verified(round_: Round) -> None:
    """Every good document once, as a clean ingest has it, and every bad one with its line and reason, once."""
    round_.store.verify(list(round_.corpus.good.values()))
    told_of(round_, round_.corpus.refused)
    assert not Path("done.json").exists()


def told_of(round_: Round, refused: Mapping[int, str]) -> None:
    """The rejects file has those lines, byte for byte, and the reasons."""
    entries = [json.loads(line) for line in REJECTS.read_text().splitlines()] if refused else []
    assert sorted(each["line"] for each in entries) == sorted(refused)
    for each in entries:
        assert re.match(refused[each["line"]], each["reason"]), each
        assert each["document"].encode("utf-8", "surrogateescape") == round_.corpus.lines[each["line"] - 1]


def retried(round_: Round) -> None:
    """What the encoder alone refused is indexed by another one, by a process that is killed first; the rest stays in the file."""
    if not round_.corpus.refused:
        return
    process = round_.retrying()
    time.sleep(round_.chance.uniform(0.3, 1.5))
    process.kill()
    process.communicate()
    round_.finished(round_.retrying)
    mended = {line for line, reason in round_.corpus.refused.items() if "encoder" in reason}
    round_.store.verify([*round_.corpus.good.values(), *(json.loads(round_.corpus.lines[line - 1]) for line in mended)])
    told_of(round_, {line: reason for line, reason in round_.corpus.refused.items() if line not in mended})


def soak(stores: Callable[[int], AbstractContextManager[Store]], minutes: float) -> None:
    """Rounds for so long, the first in any case."""
    end, seed, rounds = time.monotonic() + minutes * 60, random.randrange(10**6), 0  # noqa: S311
    met: Counter[str] = Counter()
    while not rounds or time.monotonic() < end:
        print(f"round of seed {seed + rounds}")
        chance = Chance(seed + rounds)
        with stores(seed + rounds) as store:
            options = ["--checkpoint", "done.json"] if chance.random() < 0.7 else []
            round_ = Round(store, corpus(chance), chance, Path(chance.choice(["calls.jsonl", "calls.jsonl.gz"])), options, met)
            REJECTS.unlink(missing_ok=True)
            suffer(round_, end)
            verified(round_)
            retried(round_)
        rounds += 1
    print(f"{rounds} rounds, {met.total()} faults: {dict(met)}")


@contextmanager
def embedded(seed: int) -> Iterator[Store]:
    yield Embedded(Path(f"store-{seed}"))


@contextmanager
def on_server(url: str, seed: int) -> Iterator[Store]:
    """By way of a proxy that injures a third of the requests, and is away for three seconds of each twenty."""
    third = Third(seed)

    def plan(asked: Asked) -> Fault | None:
        return lost_before if time.monotonic() % 20 < 3 else third(asked)

    with placed(url) as place, Proxy(place.url, plan, seed) as proxy:
        yield OnServer(place, proxy.url)
        print(f"{proxy.asked} requests, and {dict(proxy.met)}")


PLACES = ["embedded", *live.SERVERS]


def test_a_short_soak_of_the_embedded_store() -> None:
    soak(embedded, 0.1)


@pytest.mark.long
@pytest.mark.parametrize("where", PLACES)
def test_a_long_soak(where: str) -> None:
    soak(embedded if where == "embedded" else partial(on_server, where), MINUTES / len(PLACES))
