"""Measure one peer on one set: what it finds, what it marks, how fast, and what it takes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.peers import stores, user_lines
from benchmarks.peers.corpus import Corpus, gather_marked
from benchmarks.peers.registry import Peer, Store
from benchmarks.peers.types import Answer, Program, Target, Texts
from benchmarks.percentiles import find_percentiles
from benchmarks.quality import bootstrap
from benchmarks.quality.marking import Marks, mark_whole_texts
from benchmarks.quality.marks import MarkedText, compare
from benchmarks.quality.measures import DEPTH, RETRIEVAL, evaluate, row
from benchmarks.quality.tasks import Query

T = TypeVar("T")

WARM_UP = 8
"""Documents that are indexed, and queries that are asked, before anything is timed.

So a peer has loaded its libraries and read its weights once.
"""


@dataclass(frozen=True, slots=True)
class Site:
    """Where peers make their indexes: a folder, a server, and the folders of weights."""

    folder: Path
    server: str | None
    weights: Path | None

    @contextmanager
    def clear_target(self, peer: Peer, index: str) -> Iterator[Target]:
        """Yield an empty place for an index of `peer`, and clear it again afterwards."""
        target = self._name_target(peer, index)
        self._clear(peer, target)
        try:
            yield target
        finally:
            self._clear(peer, target)

    def _name_target(self, peer: Peer, index: str) -> Target:
        folder = self.folder / index
        url = self.server or ""
        if peer.has_spans:
            on_server = peer.store is Store.OPENSEARCH
            url = f"opensearch+{url}?replicas=0" if on_server else f"embedded:{folder}"
        return Target(folder, url, index, self.weights)

    def _clear(self, peer: Peer, target: Target) -> None:
        shutil.rmtree(target.folder, ignore_errors=True)
        if peer.store is Store.EMBEDDED:
            target.folder.mkdir(parents=True)
        elif self.server:
            stores.remove_indexes(self.server, target.index)

    def count_bytes(self, peer: Peer, target: Target) -> int:
        """Return the bytes of an index that was made."""
        if peer.store is Store.EMBEDDED:
            return stores.count_folder(target.folder)
        return stores.count_indexes(str(self.server), target.index)


def measure_search(peer: Peer, corpus: Corpus, site: Site, index: str) -> dict[str, Any]:
    """Return what `peer` finds in `corpus`, its times, and its bytes.

    nDCG@10 and MRR@10 with the interval of the first; milliseconds of one client that asks one
    query after the other; passages a second from texts to an index that answers.
    """
    program = peer.load()
    warm_up(peer, program, corpus, site, index)
    with site.clear_target(peer, index) as target:
        searcher, ingest = _time(site, lambda: program.build(corpus.texts, target))
        size = site.count_bytes(peer, target)
        ask_all(program, searcher, corpus.queries[:WARM_UP])
        (answers, milliseconds), asking = _time(
            site, lambda: ask_all(program, searcher, corpus.queries)
        )
    return {
        "passages": len(corpus.texts.passages),
        "words": corpus.words,
        "queries": len(corpus.queries),
        **judge(corpus, answers),
        "milliseconds": find_percentiles(milliseconds),
        "CPU ms of a query": round(1000 * asking.cpu / len(answers), 1),
        "ingest, s": round(ingest.elapsed, 1),
        "ingest, CPU s": round(ingest.cpu, 1),
        "passages/s": round(len(corpus.texts.passages) / ingest.elapsed, 1),
        "passages per CPU s": round(len(corpus.texts.passages) / max(ingest.cpu, 0.001), 1),
        "bytes": size,
        "bytes per 1,000 words": round(1000 * size / corpus.words),
    }


@dataclass(frozen=True, slots=True)
class Seconds:
    """How long something took, and the CPU time of this process and of the server for it."""

    elapsed: float
    cpu: float


def _time(site: Site, call: Callable[[], T]) -> tuple[T, Seconds]:
    """Return what `call` returns, and its time."""
    cpu, started_at = stores.read_cpu_seconds(site.server), time.perf_counter()
    answer = call()
    elapsed = time.perf_counter() - started_at
    return answer, Seconds(elapsed, stores.read_cpu_seconds(site.server) - cpu)


def warm_up(peer: Peer, program: Program, corpus: Corpus, site: Site, index: str) -> None:
    """Index a few documents elsewhere, and ask for them."""
    documents = corpus.texts.documents[:WARM_UP]
    ids = {document["id"] for document in documents}
    passages = [passage for passage in corpus.texts.passages if passage.document in ids]
    with site.clear_target(peer, f"warm-{index}") as target:
        searcher = program.build(Texts(documents, passages), target)
        for query in corpus.queries[:WARM_UP]:
            program.search(searcher, query.text, DEPTH, passages[0].document)
            program.search(searcher, query.text, DEPTH, None)


def ask_all(
    program: Program, searcher: Any, queries: Sequence[Query]
) -> tuple[list[list[Answer]], list[float]]:
    """Return the answers to every query, and how many milliseconds each took."""
    answers, milliseconds = [], []
    for query in queries:
        started_at = time.perf_counter()
        answers.append(program.search(searcher, query.text, DEPTH, query.within))
        milliseconds.append((time.perf_counter() - started_at) * 1000)
    return answers, milliseconds


def judge(corpus: Corpus, answers: Sequence[Sequence[Answer]]) -> dict[str, Any]:
    """Return the means of the measures of answers, averaged over groups of queries first."""
    ranked = [[corpus.places[answer.id] for answer in ranking] for ranking in answers]
    values = evaluate(ranked, corpus.right, RETRIEVAL[:2])
    return row(values, [query.group for query in corpus.queries])


def measure_marks(
    peer: Peer, marked_texts: Sequence[MarkedText], site: Site, index: str
) -> dict[str, Any]:
    """Return how well what `peer` shows in a right text agrees with what a person marked.

    A peer that shows no span shows the whole passage.
    """
    marks = (
        mark_spans(peer, marked_texts, site, index)
        if peer.has_spans
        else mark_whole_texts(marked_texts)
    )
    agreements = [compare(item, mark) for item, mark in zip(marked_texts, marks, strict=True)]
    return {
        "offsets": peer.has_spans,
        "texts": len(marked_texts),
        "f1": bootstrap.summary([agreement.f1 for agreement in agreements]),
        "iou": bootstrap.summary([agreement.iou for agreement in agreements]),
    }


def mark_spans(peer: Peer, marked_texts: Sequence[MarkedText], site: Site, index: str) -> Marks:
    """Return the span of the first answer in each text, which is indexed and searched for."""
    program = peer.load()
    with site.clear_target(peer, index) as target:
        searcher = program.build(gather_marked(marked_texts), target)
        answers = [
            program.search(searcher, item.phrase, 1, str(number))
            for number, item in enumerate(marked_texts)
        ]
    return [ranking[0].span if ranking else None for ranking in answers]


def describe(peer: Peer) -> dict[str, Any]:
    """Return what a reader has to know to repeat the measurement of `peer`."""
    return {
        "peer": peer.label,
        "versions": peer.list_versions(),
        "store": peer.store.value,
        "weights": peer.weights.value,
        "documentation": peer.documentation,
        "lines of code": user_lines.count_lines(peer.read_source()),
    }
