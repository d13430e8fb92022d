"""Each server against the in-memory exact backend on the same entries, by 50 phrases: its span leg, its BM25 leg, and what is made of the two."""

from __future__ import annotations

import itertools
import json
import math
import re
import secrets
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any, Self, Unpack

import numpy as np
import pytest

from benchmarks.phrases import phrases
from hybrid_search import calibration, phrase
from hybrid_search.backends.base import Backend, IndexSpec, Refusal, Refused, Request, Writer
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.backends.options import IndexOptions
from hybrid_search.backends.server.address import Address
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.base import Asking, Body, Engine, Outcome, Server
from hybrid_search.calibration import Calibration
from hybrid_search.encoder import SHIPPED, Encoder
from hybrid_search.ingest.sources import read
from hybrid_search.ingest.worker import BLOCK_PASSAGES, ingest
from hybrid_search.scoring import Scored, completed, fuse
from hybrid_search.search import Query, search
from hybrid_search.tokens import best_of_each
from hybrid_search.types import Entry, Floats
from tests import live
from tests.conftest import DATA

pytestmark = [pytest.mark.server, pytest.mark.data]

ALL = 10_000
"""More than the passages of 2,000 calls, and as many as a server lists."""
WINDOW, TEN = 100, 10
ROUNDING = 1e-5
Place = tuple[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Legs:
    """What a backend finds for a phrase: both legs, best first, and all that its scores are made of."""

    lexical: list[Place]
    semantic: list[Place]
    scored: list[Scored]

    def __getitem__(self, place: Place) -> Scored:
        return next(each for each in self.scored if place_of(each) == place)


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """The exact cosine of every passage's best span, and what the memory finds."""

    cosines: dict[Place, float]
    memory: Legs


def place_of(scored: Scored) -> Place:
    return scored.stored.document_id, scored.stored.ordinal


def legs(backend: Backend, index: str, request: Request) -> Legs:
    found = backend.candidates(index, request)
    scored = completed(backend, index, request, [*found.lexical, *found.semantic], found)
    places = {each.stored.key: place_of(each) for each in scored}
    return Legs([places[key] for key in found.lexical], [places[key] for key in found.semantic], scored)


@dataclass(eq=False)
class Corpus:
    """Calls, encoded once: in memory, and as the entries that any backend can be given; and the phrases that are `asked`, with their vectors."""

    asked: Mapping[str, Floats]
    memory: MemoryBackend = field(default_factory=MemoryBackend)
    entries: list[Entry] = field(default_factory=list)
    spec: IndexSpec | None = None

    def writer(self, index: str, spec: IndexSpec) -> Writer:
        self.spec = spec
        return _Copying(self.memory.writer(index, spec), self.entries)

    def write(self, backend: Backend, index: str) -> None:
        assert self.spec
        with backend.writer(index, self.spec) as writer:
            for start in range(0, len(self.entries), BLOCK_PASSAGES):
                assert writer.write(self.entries[start : start + BLOCK_PASSAGES]) == []

    @cached_property
    def exact(self) -> dict[str, Exact]:
        """What is true of each phrase."""
        return {text: self._exact(text, vector) for text, vector in self.asked.items()}

    def _exact(self, text: str, vector: Floats) -> Exact:
        places = [(each.document.id, each.passage.ordinal) for each in self.entries]
        cosines = dict(zip(places, best_of_each(vector, [each.tokens for each in self.entries]).tolist(), strict=True))
        return Exact(cosines, legs(self.memory, "calls", Request(text, vector, WINDOW)))


@dataclass(slots=True, eq=False)
class _Copying:
    """A writer that keeps what it writes."""

    writer: Writer
    kept: list[Entry]

    def known(self, ids: Sequence[str]) -> dict[str, str]:
        return self.writer.known(ids)

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        self.kept += entries
        return self.writer.write(entries)

    def abandon(self) -> None:
        self.writer.abandon()

    def delete(self, ids: Sequence[str]) -> int:
        return self.writer.delete(ids)

    def note(self, refused: Sequence[Refused]) -> None:
        self.writer.note(refused)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.writer.__exit__(kind, error, trace)


@dataclass(slots=True, eq=False)
class Recorded:
    """A server, and all that was asked of it."""

    server: Server
    asked: list[tuple[str, str, Any]] = field(default_factory=list)

    @property
    def engine(self) -> Engine:
        return self.server.engine

    @property
    def version(self) -> tuple[int, int, int]:
        return self.server.version

    def request(self, method: str, path: str, **asked: Unpack[Asking]) -> Any:
        if "lines" in asked:
            asked["lines"] = list(asked["lines"])
        self.asked.append((method, path, [asked.get(name) for name in ("params", "body", "lines")]))
        return self.server.request(method, path, **asked)

    def bulk(self, actions: Iterable[Body]) -> Iterator[Outcome]:
        return self.server.bulk(actions)

    def close(self) -> None:
        self.server.close()


@pytest.fixture(scope="module", params=[pytest.param(200, id="200 calls"), pytest.param(2000, id="2,000 calls", marks=pytest.mark.long)])
def corpus(request: pytest.FixtureRequest, real_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    made = Corpus({text: phrase.vector(real_encoder, text) for text in phrases(DATA)[:50]})
    lines = itertools.islice(read([str(DATA / "calls_sgd" / "calls.jsonl.gz")]), request.param)
    assert ingest(lines, made, real_encoder, "calls", tmp_path_factory.mktemp("corpus") / "rejected.jsonl").documents == request.param
    return made


@dataclass(frozen=True, eq=False)
class Pair:
    """The same passages on a server, in the index `name`, and in memory."""

    corpus: Corpus
    server: Recorded
    backend: ServerBackend
    name: str

    @cached_property
    def found(self) -> dict[str, Legs]:
        """What the server finds for each phrase."""
        return {text: legs(self.backend, self.name, Request(text, vector, WINDOW)) for text, vector in self.corpus.asked.items()}

    def match(self, text: str, size: int) -> dict[Place, float]:
        """The server's own answer to a plain ``match``, best first."""
        body = {"size": size, "_source": ["document_id", "ordinal"], "query": {"match": {"text": text}}}
        hits = self.server.server.request("POST", f"/{self.name}/_search", body=body)["hits"]["hits"]
        return {(hit["_source"]["document_id"], hit["_source"]["ordinal"]): hit["_score"] for hit in hits}


def _settle(server: Server, name: str) -> None:
    """Wait until segments are no longer merged: a merge makes another graph, and puts passages of equal scores in another order."""
    server.request("POST", f"/{name}/_flush", params={"force": True, "wait_if_ongoing": True})
    while server.request("GET", f"/{name}/_stats/merge")["_all"]["primaries"]["merges"]["current"]:
        time.sleep(0.5)
    server.request("POST", f"/{name}/_refresh")


@pytest.fixture(scope="module", params=live.URLS)
def pair(request: pytest.FixtureRequest, corpus: Corpus) -> Iterator[Pair]:
    with live.opened(request.param) as server:
        recorded, name = Recorded(server), f"agreement-{secrets.token_hex(4)}"
        backend = ServerBackend(recorded, IndexOptions.parse(Address.parse(request.param).options))
        try:
            corpus.write(backend, name)
            _settle(server, name)
            yield Pair(corpus, recorded, backend, name)
        finally:
            backend.drop(name)


@pytest.fixture(scope="module")
def maps(real_encoder: Encoder) -> Calibration:
    return calibration.load(SHIPPED, real_encoder.info.precision)


# The span leg


def test_the_span_leg_has_the_exact_ten_best(pair: Pair) -> None:
    exact = [pair.corpus.exact[text].memory.semantic for text in pair.found]
    recall = [len({*each.semantic[:TEN]} & {*best[:TEN]}) / TEN for each, best in zip(pair.found.values(), exact, strict=True)]
    first = [each.semantic[0] == best[0] for each, best in zip(pair.found.values(), exact, strict=True)]
    sys.stderr.write(f"recall@10 {np.mean(recall):.3f}, the same first {np.mean(first):.2f}\n")
    assert len(recall) == 50
    assert np.mean(recall) >= 0.95
    assert np.mean(first) >= 0.9


def test_what_both_span_legs_have_stands_in_the_same_order_with_the_same_cosines(pair: Pair) -> None:
    for text, found in pair.found.items():
        exact = pair.corpus.exact[text].memory
        both = [place for place in exact.semantic if place in set(found.semantic)]
        assert len(both) > TEN
        assert [found[place].cosine for place in both] == pytest.approx([exact[place].cosine for place in both], abs=0.002), text
        # equal cosines differ by the rounding of sums in another order, and may then stand in either order
        cosines = [exact[place].cosine for place in found.semantic if place in set(both)]
        assert all(second - first < ROUNDING for first, second in itertools.pairwise(cosines)), text


def test_the_cosines_of_both_legs_are_exact(pair: Pair) -> None:
    for text, found in pair.found.items():
        exact = pair.corpus.exact[text].cosines
        assert len(found.semantic) == min(WINDOW, len(exact))
        assert [each.cosine for each in found.scored] == pytest.approx([exact[place_of(each)] for each in found.scored], abs=ROUNDING), text


# The BM25 leg


def test_the_bm25_leg_is_the_servers_own_match(pair: Pair) -> None:
    for text, found in pair.found.items():
        expected = pair.match(text, WINDOW)
        assert found.lexical == list(expected), text
        assert [found[place].stored.bm25 for place in found.lexical] == pytest.approx(list(expected.values()), rel=1e-6), text


# Both


def scored(found: Legs, text: str, alpha: float, maps: Calibration) -> list[Scored]:
    """What our fusion makes of both legs, best first."""
    request = Request(text, found.scored[0].request.vector, WINDOW)
    return sorted(fuse(found.scored, request, "calibrated", alpha, maps), key=lambda each: each.order)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_the_fused_list_is_made_of_nothing_but_the_two_legs(pair: Pair, maps: Calibration, alpha: float) -> None:
    """Of every passage that a leg has: the server's own BM25 score, the exact cosine, and the score as `fusion.calibrated` writes it out."""
    for text in list(pair.found)[:10]:
        found, matching, exact = scored(pair.found[text], text, alpha, maps), pair.match(text, ALL), pair.corpus.exact[text].cosines
        assert {place_of(each) for each in found} == {*pair.found[text].lexical, *pair.found[text].semantic}
        terms = len(set(re.findall(r"\w+", text.lower())))
        for each in found:
            bm25, cosine = matching.get(place_of(each), 0.0), exact[place_of(each)]
            spans = 1 / (1 + math.exp(-maps.slope * (cosine - maps.midpoint)))
            score = alpha * spans + (1 - alpha) * bm25 / (bm25 + maps.saturation * terms)
            assert (each.stored.bm25, each.cosine, each.score) == pytest.approx((bm25, cosine, score), abs=1e-4), (text, place_of(each))


def test_what_both_fused_lists_have_differs_by_bm25_alone(pair: Pair, maps: Calibration) -> None:
    """The analyzers of the server and of the memory are not the same; all else is. What only one list has, no leg of the other has."""
    for text, found in pair.found.items():
        memory = pair.corpus.exact[text].memory
        ours, theirs = ({place_of(each): each for each in scored(leg, text, 0.5, maps)} for leg in (found, memory))
        both = ours.keys() & theirs.keys()
        assert both
        for place in both:
            assert ours[place].cosine == pytest.approx(theirs[place].cosine, abs=0.002)
            by_bm25 = 0.5 * (ours[place].parts[0] - theirs[place].parts[0])
            assert ours[place].score - theirs[place].score == pytest.approx(by_bm25, abs=1e-4), (text, place)
        assert not (ours.keys() - both) & {*memory.lexical, *memory.semantic}
        assert not (theirs.keys() - both) & {*found.lexical, *found.semantic}


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_the_hits_are_the_fused_list(pair: Pair, maps: Calibration, real_encoder: Encoder, alpha: float) -> None:
    for text, found in list(pair.found.items())[:5]:
        leg = {0.0: found.lexical, 1.0: found.semantic}.get(alpha)
        expected = [each for each in scored(found, text, alpha, maps) if leg is None or place_of(each) in set(leg)][:WINDOW]
        asked = Query((text,), pair.name, alpha=alpha, group_by="passage", size=WINDOW, spans=1)
        hits = search(pair.backend, real_encoder, lambda *_: maps, asked).hits
        assert [hit.score for hit in hits] == pytest.approx([each.score for each in expected], abs=1e-6), text
        surely = {place_of(each) for each in expected if each.score > expected[-1].score + ROUNDING}
        assert surely <= {(hit.id, hit.passage) for hit in hits}, text


# What is asked of the server


def test_a_query_is_three_searches_at_most_of_which_none_asks_for_inner_hits(pair: Pair, maps: Calibration, real_encoder: Encoder) -> None:
    pair.server.asked.clear()
    search(pair.backend, real_encoder, lambda *_: maps, Query(("can you find me a restaurant",), pair.name))  # words of over 100 passages
    assert [(method, path) for method, path, _ in pair.server.asked] == [
        ("GET", f"/{pair.name}/_mapping"),
        ("POST", "/_msearch"),  # both legs
        ("POST", "/_msearch"),  # what is missing of the union
        ("POST", f"/{pair.name}/_search"),  # what is shown
    ]
    pair.server.asked.clear()
    search(pair.backend, real_encoder, lambda *_: maps, Query(("zzyzx",), pair.name))  # a word of no call: all codes are there, and no BM25
    assert [path for _, path, _ in pair.server.asked] == [f"/{pair.name}/_mapping", "/_msearch", f"/{pair.name}/_search"]
    everything: dict[str, Any] = {"highlight": True, "sort": "id", "facets": ("title",), "explain": True, "refine": "isolate", "offset": 1}
    for alpha, group_by, over in [(0.0, "document", "matches"), (0.5, "passage", "window"), (1.0, "document", "matches")]:
        asked = Query(("a restaurant in town",), pair.name, alpha, 5, {"title": {"gte": "A"}}, group_by=group_by, facets_over=over, **everything)
        assert search(pair.backend, real_encoder, lambda *_: maps, asked).hits
    assert len(pair.server.asked) > 4 + 3 * 5
    assert not [each for each in pair.server.asked if "inner_hits" in json.dumps(each)]
