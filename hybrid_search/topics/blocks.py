"""Cut a scan into blocks, and score them on all cores, or by the actors of a Ray cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, TypeVar

import numpy as np

from hybrid_search.backends.types import ScannedPassage
from hybrid_search.ingest.executors import LOCAL
from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
from hybrid_search.system import available_cores
from hybrid_search.text import word_codes
from hybrid_search.text.boundaries import join_probabilities
from hybrid_search.text.joined_words import join_sound
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Floats, WordCodes
from hybrid_search.topics.types import Integers, ScannedBlock

Scored = TypeVar("Scored")

BLOCK_PASSAGES = 64
"""Passages that are scored together."""


def read_blocks(
    passages: Iterable[ScannedPassage], shard: Shard = ALL_DOCUMENTS
) -> Iterator[ScannedBlock]:
    """Yield the passages of a shard's documents in blocks, numbered as `ScannedBlock` says."""
    documents = groupby(passages, key=lambda passage: passage.document_id)
    owned = (group for name, group in documents if shard.owns_id(name))
    numbered = ((passage, number) for number, group in enumerate(owned) for passage in group)
    count = 0
    while rows := list(islice(numbered, BLOCK_PASSAGES)):
        block, numbers = zip(*rows, strict=True)
        yield ScannedBlock(block, count, np.array(numbers, dtype=np.int64))
        count += len(rows)


def score_blocks(
    blocks: Iterable[ScannedBlock],
    score: Callable[[ScannedBlock], Scored],
    engine: str = LOCAL,
    workers: int | None = None,
) -> Iterator[tuple[ScannedBlock, Scored]]:
    """Yield each block with its score, in order; a few blocks ahead are scored.

    With the engine ``local`` that is done in threads on all cores, else by actors that live as long
    as one scan: `workers` of one core each, None for one a core of the cluster. Errors of `Actors`
    are raised as they are.
    """
    if engine == LOCAL:
        yield from _score_in_threads(blocks, score)
        return
    from hybrid_search.cluster.actors import Actors

    with Actors(ScoringWorker, lambda _: (score,), "cpu", workers) as actors:
        yield from actors.map("score", ((block, block) for block in blocks))


def _score_in_threads(
    blocks: Iterable[ScannedBlock], score: Callable[[ScannedBlock], Scored]
) -> Iterator[tuple[ScannedBlock, Scored]]:
    cores = available_cores()
    waiting: deque[tuple[ScannedBlock, Future[Scored]]] = deque()
    with ThreadPoolExecutor(cores, "hybrid_search-mine") as pool:
        try:
            for block in blocks:
                waiting.append((block, pool.submit(score, block)))
                if len(waiting) > 2 * cores:
                    first, future = waiting.popleft()
                    yield first, future.result()
            for first, future in waiting:
                yield first, future.result()
        finally:
            pool.shutdown(cancel_futures=True)


class ScoringWorker:
    """An actor that scores blocks. Ray derives a class from it, so it has no slots."""

    def __init__(self, score: Callable[[ScannedBlock], Any]) -> None:
        self._score = score

    def score(self, block: ScannedBlock) -> Any:
        """Return the score of a block."""
        return self._score(block)


CLAUSE_BOUNDARY = 0.5
"""The probability of a boundary from which a gap between words parts two clauses."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinedPassages:
    """The sound passages of a block as one, and what does not depend on a phrase.

    Attributes:
        tokens: Their word codes; with the places of the words in their passages.
        owners: The position in the block of each word's passage, int64 ``[words]``.
        starts: Where each word begins in its document, int64 ``[words]``.
        ends: Where it ends.
        clause_starts: Where its clause begins.
        clause_ends: Where its clause ends.
        priors: The prior of each span, float32 ``[spans]``; None without a model of clauses.
    """

    tokens: WordCodes
    owners: Integers
    starts: Integers
    ends: Integers
    clause_starts: Integers
    clause_ends: Integers
    priors: Floats | None


def join_passages(
    block: ScannedBlock, dimension: int, prior: SpanPrior | None
) -> tuple[JoinedPassages | None, int]:
    """Return the sound passages of a block as one, None if they have no word.

    `dimension` is that of the index, and `prior` the model of clauses, if there is one. The second
    is the number of passages that were left out: their codes are damaged.
    """
    sound, tokens = _join_sound(block.passages, dimension)
    damaged = len(block.passages) - len(sound)
    return _measure_words(block, sound, tokens, prior) if len(tokens.words) else None, damaged


def _join_sound(
    passages: Sequence[ScannedPassage], dimension: int
) -> tuple[Sequence[int], WordCodes]:
    """Return the positions of the passages with sound codes, and their codes as one."""
    codes = [passage.tokens for passage in passages]
    joined = join_sound(codes, dimension)
    if joined is not None:
        return range(len(codes)), joined[0]
    are_sound = [word_codes.is_sound(tokens, dimension) for tokens in codes]
    sound = np.flatnonzero(are_sound).tolist()
    joined = join_sound([codes[number] for number in sound], dimension) if sound else None
    return sound, joined[0] if joined else word_codes.UNREADABLE


def _measure_words(
    block: ScannedBlock, sound: Sequence[int], tokens: WordCodes, prior: SpanPrior | None
) -> JoinedPassages:
    passages = [block.passages[number] for number in sound]
    codes = [passage.tokens for passage in passages]
    counts = np.array([len(item.words) for item in codes])
    owners = np.repeat(np.array(sound, dtype=np.int64), counts)
    places = tokens.words.astype(np.int64)
    places += np.repeat([passage.start for passage in passages], counts)[:, None]
    starts, ends = places[:, 0], places[:, 1]
    if prior is None:
        return JoinedPassages(tokens, owners, starts, ends, starts, ends, None)
    begins_clause = join_probabilities(codes) >= CLAUSE_BOUNDARY
    begins_clause[(np.cumsum(counts) - counts)[counts > 0]] = True
    clauses = np.cumsum(begins_clause) - 1
    first_words = np.flatnonzero(begins_clause)
    last_words = np.append(first_words[1:], len(starts)) - 1
    return JoinedPassages(
        tokens,
        owners,
        starts,
        ends,
        starts[first_words[clauses]],
        ends[last_words[clauses]],
        np.concatenate(list(prior.score_passages(codes))),
    )
