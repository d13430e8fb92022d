"""Every server is compared with the exact memory backend: same entries, 50 phrases.

The tests compare the span leg, the BM25 leg, and the list fused from both.
"""

from __future__ import annotations

import itertools
import math
import re
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import TracebackType
from typing import Self, cast

import numpy as np
import pytest

from benchmarks.phrases import phrases
from hybrid_search.backends.base import Backend, Writer
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.types import IndexSpec, Refusal, RejectedDocument, Request
from hybrid_search.backends.window import choose_window
from hybrid_search.encoder import SHIPPED, Encoder
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.pipeline import BLOCK_PASSAGES, ingest
from hybrid_search.ingest.sources.files import read
from hybrid_search.search import calibration, phrase_vector
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.candidates import fuse, score_passages
from hybrid_search.search.pipeline import search
from hybrid_search.search.query import Query
from hybrid_search.search.types import ScoredPassage
from hybrid_search.text.best_passages import best_passages
from hybrid_search.text.types import Entry, Floats
from tests.conftest import DATA
from tests.helpers import live_servers

pytestmark = [pytest.mark.server, pytest.mark.data]

ALL = 10_000
"""More than the passages of 2,000 calls, and the most hits that a server returns."""
WINDOW, TEN = 100, 10
ROUNDING = 1e-5
RawIndex = tuple[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Legs:
    """Both legs that a backend returns for a phrase, best first, and their scored passages."""

    lexical: list[RawIndex]
    semantic: list[RawIndex]
    passages: list[ScoredPassage]

    def __getitem__(self, place: RawIndex) -> ScoredPassage:
        return next(passage for passage in self.passages if place_of(passage) == place)


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """The exact cosine of every passage's best span, and the legs of the memory backend."""

    cosines: dict[RawIndex, float]
    memory: Legs


def place_of(passage: ScoredPassage) -> RawIndex:
    return passage.stored.document_id, passage.stored.ordinal


def find_legs(backend: Backend, index: str, request: Request) -> Legs:
    passages, _ = score_passages(index, request, backend.find(index, request).passages)
    by_words, by_spans = (
        [(passage.document_id, passage.ordinal) for passage in backend.find(index, leg).passages]
        for leg in (replace(request, semantic=False), replace(request, lexical=False))
    )
    return Legs(by_words, by_spans, passages)


@dataclass(eq=False)
class Corpus:
    """Calls, encoded once, and the phrases with their vectors.

    The calls are in a memory backend, and in `entries`, which can be written to any backend.
    """

    vectors_by_phrase: Mapping[str, Floats]
    memory: MemoryBackend = field(default_factory=MemoryBackend)
    entries: list[Entry] = field(default_factory=list)
    spec: IndexSpec | None = None

    def writer(self, index: str, spec: IndexSpec) -> Writer:
        self.spec = spec
        return _CopyingWriter(self.memory.writer(index, spec), self.entries)

    def write(self, backend: Backend, index: str) -> None:
        assert self.spec
        with backend.writer(index, self.spec) as writer:
            for start in range(0, len(self.entries), BLOCK_PASSAGES):
                assert writer.write(self.entries[start : start + BLOCK_PASSAGES]) == []

    @cached_property
    def exact(self) -> dict[str, Exact]:
        """The exact answer to each phrase."""
        return {text: self._exact(text, vector) for text, vector in self.vectors_by_phrase.items()}

    def _exact(self, text: str, vector: Floats) -> Exact:
        places = [(entry.document.id, entry.passage.ordinal) for entry in self.entries]
        codes = dict(zip(places, [entry.tokens for entry in self.entries], strict=True))
        best = best_passages(vector, codes)
        cosines = {place: float(best.cosines[place].max(initial=-1.0)) for place in places}
        return Exact(cosines, find_legs(self.memory, "calls", Request(text, vector, WINDOW)))


@dataclass(slots=True, eq=False)
class _CopyingWriter:
    """A writer that also collects the entries that it writes."""

    writer: Writer
    entries: list[Entry]

    def read_source_hashes(self, ids: Sequence[str]) -> dict[str, str]:
        return self.writer.read_source_hashes(ids)

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        self.entries += entries
        return self.writer.write(entries)

    def abandon(self) -> None:
        self.writer.abandon()

    def delete(self, ids: Sequence[str]) -> int:
        return self.writer.delete(ids)

    def note(self, rejected: Sequence[RejectedDocument]) -> None:
        self.writer.note(rejected)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.writer.__exit__(kind, error, trace)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(200, id="200 calls"),
        pytest.param(2000, id="2,000 calls", marks=pytest.mark.long),
    ],
)
def corpus(
    request: pytest.FixtureRequest, real_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory
) -> Corpus:
    filled_corpus = Corpus(
        {text: phrase_vector.query_vector(real_encoder, text) for text in phrases(DATA)[:50]}
    )
    lines = itertools.islice(read([str(DATA / "calls_sgd" / "calls.jsonl.gz")]), request.param)
    assert (
        ingest(
            lines,
            cast("Backend", filled_corpus),
            real_encoder,
            IngestOptions(
                "calls",
                tmp_path_factory.mktemp("corpus") / "rejected.jsonl",
            ),
        ).documents
        == request.param
    )
    return filled_corpus


@dataclass(frozen=True, eq=False)
class Pair:
    """The same passages on a server, in the index `name`, and in memory."""

    corpus: Corpus
    server: Server
    backend: ServerBackend
    name: str

    @cached_property
    def legs_by_phrase(self) -> dict[str, Legs]:
        """The legs that the server returns for each phrase."""
        return {
            text: find_legs(self.backend, self.name, Request(text, vector, WINDOW))
            for text, vector in self.corpus.vectors_by_phrase.items()
        }

    def match(self, text: str, size: int) -> dict[RawIndex, float]:
        """Return the server's answer to a plain ``match``, best first."""
        body = {
            "size": size,
            "_source": ["document_id", "ordinal"],
            "query": {"match": {"text": text}},
        }
        hits = self.server.request("POST", f"/{self.name}/_search", body=body)["hits"]["hits"]
        return {
            (hit["_source"]["document_id"], hit["_source"]["ordinal"]): hit["_score"]
            for hit in hits
        }


def _settle(server: Server, name: str) -> None:
    """Wait until no segments are being merged.

    A merge builds another graph, and changes the order of passages with equal scores.
    """
    server.request("POST", f"/{name}/_flush", params={"force": True, "wait_if_ongoing": True})
    while server.request("GET", f"/{name}/_stats/merge")["_all"]["primaries"]["merges"]["current"]:
        time.sleep(0.5)
    server.request("POST", f"/{name}/_refresh")


@pytest.fixture(scope="module", params=live_servers.URLS)
def pair(request: pytest.FixtureRequest, corpus: Corpus) -> Iterator[Pair]:
    with live_servers.open_server(request.param) as server:
        name = f"agreement-{secrets.token_hex(4)}"
        backend = ServerBackend(server, IndexOptions.parse(Address.parse(request.param).options))
        try:
            corpus.write(backend, name)
            _settle(server, name)
            # The first search of a remembered index counts its passages and reaches further than
            # later ones, which would make the legs below differ from those of queries.
            backend.read_head(name)
            text, vector = next(iter(corpus.vectors_by_phrase.items()))
            backend.find(name, Request(text, vector, WINDOW))
            yield Pair(corpus, server, backend, name)
        finally:
            backend.drop_index(name)


@pytest.fixture(scope="module")
def maps(real_encoder: Encoder) -> Calibration:
    return calibration.load(SHIPPED, real_encoder.info.precision)


# The span leg


def test_the_span_leg_has_the_exact_ten_best(pair: Pair) -> None:
    exact = [pair.corpus.exact[text].memory.semantic for text in pair.legs_by_phrase]
    recall = [
        len({*server_legs.semantic[:TEN]} & {*best[:TEN]}) / TEN
        for server_legs, best in zip(pair.legs_by_phrase.values(), exact, strict=True)
    ]
    first = [
        server_legs.semantic[0] == best[0]
        for server_legs, best in zip(pair.legs_by_phrase.values(), exact, strict=True)
    ]
    sys.stderr.write(f"recall@10 {np.mean(recall):.3f}, the same first {np.mean(first):.2f}\n")
    assert len(recall) == 50
    assert np.mean(recall) >= 0.95
    assert np.mean(first) >= 0.9


def test_what_both_span_legs_have_stands_in_the_same_order_with_the_same_cosines(
    pair: Pair,
) -> None:
    for text, server_legs in pair.legs_by_phrase.items():
        exact = pair.corpus.exact[text].memory
        shared = [place for place in exact.semantic if place in set(server_legs.semantic)]
        assert len(shared) > TEN
        assert [server_legs[place].cosine for place in shared] == pytest.approx(
            [exact[place].cosine for place in shared], abs=0.002
        ), text
        # Equal cosines may differ by rounding, because sums are taken in another order, and may
        # then stand in either order.
        cosines = [exact[place].cosine for place in server_legs.semantic if place in set(shared)]
        assert all(second - first < ROUNDING for first, second in itertools.pairwise(cosines)), text


def test_the_cosines_of_both_legs_are_exact(pair: Pair) -> None:
    for text, server_legs in pair.legs_by_phrase.items():
        exact = pair.corpus.exact[text].cosines
        documents = {document for document, _ in server_legs.semantic}
        assert len(documents) == min(WINDOW, len({document for document, _ in exact}))
        assert min(WINDOW, len(exact)) <= len(server_legs.semantic) < 2 * WINDOW
        assert [passage.cosine for passage in server_legs.passages] == pytest.approx(
            [exact[place_of(passage)] for passage in server_legs.passages], abs=ROUNDING
        ), text


# The BM25 leg


def test_the_bm25_leg_is_the_servers_own_match(pair: Pair) -> None:
    for text, server_legs in pair.legs_by_phrase.items():
        matching = pair.match(text, ALL)
        ranked = list(matching)
        positions = choose_window((document for document, _ in ranked), WINDOW)
        expected = {ranked[position]: matching[ranked[position]] for position in positions}
        assert server_legs.lexical[:WINDOW] == ranked[:WINDOW], text
        assert [server_legs[place].stored.bm25 for place in server_legs.lexical] == pytest.approx(
            list(expected.values()), rel=1e-6
        ), text  # of equal passages of a document a server may take another


# Both


def fuse_legs(both_legs: Legs, text: str, alpha: float, maps: Calibration) -> list[ScoredPassage]:
    """Return the passages of both legs as our fusion ranks them, best first."""
    request = Request(text, both_legs.passages[0].request.vector, WINDOW)
    return sorted(
        fuse(both_legs.passages, request, "calibrated", alpha, maps),
        key=lambda passage: passage.sort_key,
    )


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_the_fused_list_is_made_of_nothing_but_the_two_legs(
    pair: Pair, maps: Calibration, alpha: float
) -> None:
    """Check the parts of the score of every passage in a leg.

    They are the server's own BM25 score and the exact cosine, fused as `fusion.calibrated` does.
    """
    for text in list(pair.legs_by_phrase)[:10]:
        fused, matching, exact = (
            fuse_legs(pair.legs_by_phrase[text], text, alpha, maps),
            pair.match(text, ALL),
            pair.corpus.exact[text].cosines,
        )
        assert {place_of(passage) for passage in fused} == {
            *pair.legs_by_phrase[text].lexical,
            *pair.legs_by_phrase[text].semantic,
        }
        terms = len(set(re.findall(r"\w+", text.lower())))
        for passage in fused:
            bm25, cosine = matching.get(place_of(passage), 0.0), exact[place_of(passage)]
            spans = 1 / (1 + math.exp(-maps.slope * (cosine - maps.midpoint)))
            score = alpha * spans + (1 - alpha) * bm25 / (bm25 + maps.saturation * terms)
            assert (passage.stored.bm25, passage.cosine, passage.score) == pytest.approx(
                (bm25, cosine, score), abs=1e-4
            ), (text, place_of(passage))


def test_what_both_fused_lists_have_differs_by_bm25_alone(pair: Pair, maps: Calibration) -> None:
    """Compare the server's fused list with that of the memory backend.

    Only their analyzers differ. A passage that is in one list only is in no leg of the other.
    """
    for text, server_legs in pair.legs_by_phrase.items():
        memory = pair.corpus.exact[text].memory
        ours, theirs = (
            {place_of(passage): passage for passage in fuse_legs(leg, text, 0.5, maps)}
            for leg in (server_legs, memory)
        )
        shared = ours.keys() & theirs.keys()
        assert shared
        for place in shared:
            assert ours[place].cosine == pytest.approx(theirs[place].cosine, abs=0.002)
            by_bm25 = 0.5 * (ours[place].parts[0] - theirs[place].parts[0])
            assert ours[place].score - theirs[place].score == pytest.approx(by_bm25, abs=1e-4), (
                text,
                place,
            )
        assert not (ours.keys() - shared) & {*memory.lexical, *memory.semantic}
        assert not (theirs.keys() - shared) & {*server_legs.lexical, *server_legs.semantic}


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_the_hits_are_the_fused_list(
    pair: Pair, maps: Calibration, real_encoder: Encoder, alpha: float
) -> None:
    for text, server_legs in list(pair.legs_by_phrase.items())[:5]:
        leg = {0.0: server_legs.lexical, 1.0: server_legs.semantic}.get(alpha)
        expected = [
            passage
            for passage in fuse_legs(server_legs, text, alpha, maps)
            if leg is None or place_of(passage) in set(leg)
        ][:WINDOW]
        query = Query(
            text,
            index=pair.name,
            alpha=alpha,
            group_by="passage",
            size=WINDOW,
            spans=1,
            spans_by="cosine",  # as the legs above are scored
        )
        hits = search(pair.backend, real_encoder, lambda *_: maps, query).hits
        assert [hit.score for hit in hits] == pytest.approx(
            [passage.score for passage in expected], abs=1e-6
        ), text
        surely = {
            place_of(passage)
            for passage in expected
            if passage.score > expected[-1].score + ROUNDING
        }
        assert surely <= {(hit.id, hit.passage) for hit in hits}, text
