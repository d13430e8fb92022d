"""Each server against the in-memory exact backend on the same entries, by 50 phrases: its span leg, its BM25 leg, and what is made of the two."""

from __future__ import annotations

import itertools
import json
import math
import re
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import numpy as np
import pytest

from benchmarks.phrases import phrases
from hybrid_search import calibration, phrase
from hybrid_search.backends.base import Backend, IndexSpec, Refusal, Refused, Request, Writer
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.backends.options import IndexOptions
from hybrid_search.backends.server.address import Address
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.base import Body, Engine, Outcome, Server
from hybrid_search.calibration import Calibration
from hybrid_search.encoder import SHIPPED, Encoder
from hybrid_search.ingest.sources import read
from hybrid_search.ingest.worker import BLOCK_PASSAGES, ingest
from hybrid_search.results import Result
from hybrid_search.scoring import Scored, fuse, retrieve
from hybrid_search.search import Query, search
from hybrid_search.tokens import best_of_each
from hybrid_search.types import Entry, Floats
from tests import live
from tests.conftest import DATA

pytestmark = [pytest.mark.server, pytest.mark.data]

ALL = 10_000
"""More than the passages of 2,000 calls, and as many as a server lists."""
WINDOW, TEN = 100, 10
Place = tuple[str, int]


@dataclass(eq=False)
class Corpus:
    """Calls, encoded once: in memory, and as the entries that any backend can be given."""

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
    def places(self) -> list[Place]:
        return [(each.document.id, each.passage.ordinal) for each in self.entries]

    def cosines(self, vector: Floats) -> dict[Place, float]:
        """The exact cosine of each passage's best span."""
        return dict(zip(self.places, best_of_each(vector, [each.tokens for each in self.entries]).tolist(), strict=True))


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

    def request(
        self, method: str, path: str, *, params: Body | None = None, body: Any = None, lines: Iterable[Body] | None = None, binary: bool = False
    ) -> Any:
        sent = None if lines is None else list(lines)
        self.asked.append((method, path, [params, body, sent]))
        return self.server.request(method, path, params=params, body=body, lines=sent, binary=binary)

    def bulk(self, actions: Iterable[Body]) -> Iterator[Outcome]:
        return self.server.bulk(actions)

    def close(self) -> None:
        self.server.close()


@pytest.fixture(scope="module", params=[pytest.param(200, id="200 calls"), pytest.param(2000, id="2,000 calls", marks=pytest.mark.long)])
def corpus(request: pytest.FixtureRequest, real_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    made = Corpus()
    lines = itertools.islice(read([str(DATA / "calls_sgd" / "calls.jsonl.gz")]), request.param)
    assert ingest(lines, made, real_encoder, "calls", tmp_path_factory.mktemp("corpus") / "rejected.jsonl").documents == request.param
    return made


@dataclass(frozen=True, eq=False)
class Pair:
    """The same passages on a server, in the index `name`, and in memory; `asked` are the phrases with their vectors."""

    corpus: Corpus
    server: Recorded
    backend: ServerBackend
    name: str
    encoder: Encoder
    asked: Mapping[str, Floats]

    def request(self, text: str, **legs: bool) -> Request:
        return Request(text, self.asked[text], WINDOW, **legs)

    def match(self, text: str, size: int) -> list[tuple[Place, float]]:
        """The server's own answer to a plain ``match``."""
        body = {"size": size, "_source": ["document_id", "ordinal"], "query": {"match": {"text": text}}}
        hits = self.server.server.request("POST", f"/{self.name}/_search", body=body)["hits"]["hits"]
        return [((hit["_source"]["document_id"], hit["_source"]["ordinal"]), hit["_score"]) for hit in hits]

    def spans(self, text: str) -> tuple[dict[Place, float], dict[Place, float]]:
        """The span legs of the server and of the memory, best first."""
        asked = self.request(text, lexical=False)
        legs = [retrieve(*self.place(memory), asked)[0] for memory in (False, True)]
        server, memory = ({(each.stored.document_id, each.stored.ordinal): each.cosine for each in leg} for leg in legs)
        return server, memory

    def place(self, memory: bool) -> tuple[Backend, str]:
        return (self.corpus.memory, "calls") if memory else (self.backend, self.name)

    @property
    def maps(self) -> Calibration:
        return calibration.load(SHIPPED, self.encoder.info.precision)

    def search(self, text: str, **more: Any) -> Result:
        query = Query(phrases=(text,), index=self.name, **{"size": WINDOW, "spans": 1, **more})
        return search(self.backend, self.encoder, lambda _: self.maps, query)


@pytest.fixture(scope="module", params=live.URLS)
def pair(request: pytest.FixtureRequest, corpus: Corpus, real_encoder: Encoder) -> Iterator[Pair]:
    asked = {text: phrase.vector(real_encoder, text) for text in phrases(DATA)[:50]}
    with live.opened(request.param) as server:
        recorded, name = Recorded(server), f"agreement-{secrets.token_hex(4)}"
        backend = ServerBackend(recorded, IndexOptions.parse(Address.parse(request.param).options))
        try:
            corpus.write(backend, name)
            yield Pair(corpus, recorded, backend, name, real_encoder, asked)
        finally:
            backend.drop(name)


# The span leg


def test_the_span_leg_has_the_exact_ten_best(pair: Pair) -> None:
    legs = [pair.spans(text) for text in pair.asked]
    recall = [len({*list(found)[:TEN]} & {*list(exact)[:TEN]}) / TEN for found, exact in legs]
    first = [next(iter(found)) == next(iter(exact)) for found, exact in legs]
    print(f"recall@10 {np.mean(recall):.3f}, the same first {np.mean(first):.2f}", file=sys.stderr)  # noqa: T201
    assert len(legs) == 50
    assert np.mean(recall) >= 0.95
    assert np.mean(first) >= 0.9


def test_what_both_span_legs_have_stands_in_the_same_order_with_the_same_cosines(pair: Pair) -> None:
    for text in pair.asked:
        found, exact = pair.spans(text)
        both = [place for place in exact if place in found]
        assert [found[place] for place in both] == pytest.approx([exact[place] for place in both], abs=0.002), text
        # cosines of the same codes are equal but for the rounding of sums in other batches: what they say is equal may stand in either order
        cosines = [exact[place] for place in found if place in exact]
        assert all(second - first < 1e-5 for first, second in itertools.pairwise(cosines)), text


def test_no_passage_has_another_cosine_than_its_exact_one(pair: Pair) -> None:
    for text, vector in pair.asked.items():
        exact = pair.corpus.cosines(vector)
        found, _ = pair.spans(text)
        assert len(found) == WINDOW
        assert list(found.values()) == pytest.approx([exact[place] for place in found], abs=1e-4), text


# The BM25 leg


def test_the_bm25_leg_is_the_servers_own_match(pair: Pair) -> None:
    for text in pair.asked:
        scored, _ = retrieve(pair.backend, pair.name, pair.request(text, semantic=False))
        assert [((each.stored.document_id, each.stored.ordinal), each.stored.bm25) for each in scored] == pair.match(text, WINDOW), text


# Both


def scored(pair: Pair, text: str, alpha: float, *, memory: bool = False) -> dict[Place, Scored]:
    """All passages that were fused, best first."""
    request = pair.request(text, lexical=alpha < 1, semantic=alpha > 0)
    found, _ = retrieve(*pair.place(memory), request)
    ordered = sorted(fuse(found, request, "calibrated", alpha, pair.maps), key=lambda each: each.order)
    return {(each.stored.document_id, each.stored.ordinal): each for each in ordered}


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_the_fused_list_is_made_of_nothing_but_the_two_legs(pair: Pair, alpha: float) -> None:
    """Of every passage that a leg has: the server's own BM25 score, the exact cosine, and the score as `fusion.calibrated` writes it out."""
    for text, vector in pair.asked.items():
        found, matching, exact = scored(pair, text, alpha), dict(pair.match(text, ALL)), pair.corpus.cosines(vector)
        terms = len(set(re.findall(r"\w+", text.lower())))
        legs = {*(dict(pair.match(text, WINDOW)) if alpha < 1 else {}), *(pair.spans(text)[0] if alpha > 0 else {})}
        assert set(found) == legs, text
        for place, each in found.items():
            bm25, cosine = matching.get(place, 0.0), exact[place]
            spans = 1 / (1 + math.exp(-pair.maps.slope * (cosine - pair.maps.midpoint)))
            score = alpha * spans + (1 - alpha) * bm25 / (bm25 + pair.maps.saturation * terms)
            assert (each.stored.bm25, each.cosine, each.score) == pytest.approx((bm25, cosine, score), abs=1e-4), (text, place)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_the_hits_are_the_fused_list(pair: Pair, alpha: float) -> None:
    for text in list(pair.asked)[:10]:
        hits = pair.search(text, alpha=alpha, group_by="passage").hits
        expected = list(scored(pair, text, alpha).items())[:WINDOW]
        assert [hit.score for hit in hits] == pytest.approx([each.score for _, each in expected], abs=1e-6)
        numbers = {place: each.score for place, each in expected}
        assert sum((hit.id, hit.passage) not in numbers for hit in hits if hit.score > hits[-1].score + 1e-6) == 0


def test_what_both_fused_lists_have_differs_by_bm25_alone(pair: Pair) -> None:
    """The analyzers of the server and of the memory are not the same; all else is."""
    for text in pair.asked:
        found, exact = scored(pair, text, 0.5), scored(pair, text, 0.5, memory=True)
        both = found.keys() & exact.keys()
        assert both
        for place in both:
            ours, theirs = found[place], exact[place]
            assert ours.cosine == pytest.approx(theirs.cosine, abs=0.002)
            assert ours.score - theirs.score == pytest.approx(0.5 * (ours.parts[0] - theirs.parts[0]), abs=1e-4)


# What is asked of the server


def test_a_query_is_three_searches_of_which_none_asks_for_inner_hits(pair: Pair) -> None:
    pair.server.asked.clear()
    for text in pair.asked:
        before = len(pair.server.asked)
        pair.search(text)
        assert [(method, path) for method, path, _ in pair.server.asked[before:]] == [
            ("GET", f"/{pair.name}/_mapping"),
            ("POST", "/_msearch"),  # both legs
            ("POST", "/_msearch"),  # what is missing of the union
            ("POST", f"/{pair.name}/_search"),  # what is shown
        ]
    everything: dict[str, Any] = {"highlight": True, "sort": "id", "facets": ("title",), "explain": True, "refine": "isolate", "offset": 5}
    for alpha, group_by, over in itertools.product((0.0, 0.5, 1.0), ("document", "passage"), ("window", "matches")):
        pair.search("a refund", alpha=alpha, group_by=group_by, facets_over=over, where={"title": {"gte": "A"}}, size=5, **everything)
    assert len(pair.server.asked) > 4 * 50
    assert not [each for each in pair.server.asked if "inner_hits" in json.dumps(each)]
