"""Cut a scan into blocks, and score them on all cores, or by the actors of a Ray cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np

from hybrid_search.backends.types import ScannedPassage
from hybrid_search.ingest.executors import LOCAL, check_executor
from hybrid_search.ingest.shards import Shard
from hybrid_search.system import available_cores
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.topics.span_scores import find_candidates
from hybrid_search.topics.topic_matrix import TopicMatrix
from hybrid_search.topics.types import Candidates, ScannedBlock

Scored = TypeVar("Scored")

BLOCK_PASSAGES = 64
"""Passages that are scored together."""


def read_blocks(passages: Iterable[ScannedPassage], shard: Shard) -> Iterator[ScannedBlock]:
    """Yield the passages of a shard's documents in blocks, numbered as `ScannedBlock` says."""
    block: list[ScannedPassage] = []
    documents: list[int] = []
    count, document, document_id, is_owned = 0, -1, None, False
    for passage in passages:
        if passage.document_id != document_id:
            document_id = passage.document_id
            is_owned = shard.owns_id(document_id)
            document += is_owned
        if not is_owned:
            continue
        block.append(passage)
        documents.append(document)
        if len(block) == BLOCK_PASSAGES:
            yield ScannedBlock(block, count, np.array(documents, dtype=np.int64))
            count += len(block)
            block, documents = [], []
    if block:
        yield ScannedBlock(block, count, np.array(documents, dtype=np.int64))


def score_blocks(
    blocks: Iterable[ScannedBlock], score: Callable[[ScannedBlock], Scored]
) -> Iterator[tuple[ScannedBlock, Scored]]:
    """Yield each block with its score, in order; a few blocks ahead are scored in threads."""
    cores = available_cores()
    waiting: deque[tuple[ScannedBlock, Future[Scored]]] = deque()
    with ThreadPoolExecutor(cores, "hybrid_search-mine") as pool:
        try:
            for block in blocks:
                waiting.append((block, pool.submit(score, block)))
                if len(waiting) > 2 * cores:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            for _, future in waiting:
                future.cancel()


ScoredBlock = tuple[Candidates, int]
"""The result of `find_candidates`: the candidates, and the number of damaged passages."""


ScoreBlocks = Callable[
    [Iterable[ScannedBlock], TopicMatrix, SpanPrior | None],
    Iterator[tuple[ScannedBlock, ScoredBlock]],
]
"""Yields each block with its candidates, in order; a few blocks are taken ahead."""


def score_in_threads(
    blocks: Iterable[ScannedBlock], matrix: TopicMatrix, prior: SpanPrior | None
) -> Iterator[tuple[ScannedBlock, ScoredBlock]]:
    """Yield each block with its candidates, found on all cores of this machine."""
    return score_blocks(blocks, partial(find_candidates, matrix=matrix, prior=prior))


def score_on_ray(
    blocks: Iterable[ScannedBlock],
    matrix: TopicMatrix,
    prior: SpanPrior | None,
    workers: int | None = None,
) -> Iterator[tuple[ScannedBlock, ScoredBlock]]:
    """Yield each block with its candidates, found by actors that live as long as one scan.

    `workers` is how many, of one core each; None is for one a core of the cluster. Errors of
    `Actors` are raised as they are.
    """
    from hybrid_search.cluster.actors import Actors

    with Actors(ScoringWorker, lambda _: (matrix, prior), "cpu", workers) as actors:
        yield from actors.map("score", ((block, block) for block in blocks))


class ScoringWorker:
    """The phrases of a scan in an actor. Ray derives a class from it, so it has no slots."""

    def __init__(self, matrix: TopicMatrix, prior: SpanPrior | None) -> None:
        self._matrix, self._prior = matrix, prior

    def score(self, block: ScannedBlock) -> ScoredBlock:
        """Return the candidates of a block, and the number of its damaged passages."""
        return find_candidates(block, self._matrix, self._prior)


def choose_scoring(engine: str, workers: int | None) -> ScoreBlocks:
    """Return what scores blocks: `score_in_threads` for ``local``, `score_on_ray` for ``ray``.

    UsageError is raised for another engine, or for `workers` of the local one.
    """
    check_executor(engine, workers)
    return score_in_threads if engine == LOCAL else partial(score_on_ray, workers=workers)
