"""Score spans in threads of this process, or by the actors of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from hybrid_search.ingest.executors.base import LOCAL, check_executor
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.topics.blocks import score_blocks
from hybrid_search.topics.span_scores import find_candidates
from hybrid_search.topics.topic_matrix import TopicMatrix
from hybrid_search.topics.types import Candidates, ScannedBlock

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
