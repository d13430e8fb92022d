"""Cut a scan into blocks, and score them on all cores."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from hybrid_search.backends.types import ScannedPassage
from hybrid_search.ingest.shards import Shard
from hybrid_search.system import available_cores
from hybrid_search.topics.types import ScannedBlock

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
