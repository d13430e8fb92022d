"""The head of an index (spec and metadata fields), and how a query uses a remembered one.

A query needs the head before it can encode its phrase and check its conditions. A backend for which
reading it is a round trip may remember it (`RemoteBackend`). It then has to notice when another
process replaces the index, and `answer_by_head` runs such a query again by the new head.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TypeVar

from hybrid_search.backends.base import Backend, RemoteBackend
from hybrid_search.backends.types import IndexSpec
from hybrid_search.errors import (
    HybridSearchError,
    IndexStoreError,
    ModelError,
    ServerError,
    UsageError,
)
from hybrid_search.text import passages, spans

T = TypeVar("T")

Head = tuple[IndexSpec, Mapping[str, str]]

TRIES = 3
"""Times that a query is run by a head that turns out to be outdated."""


class IndexChangedError(IndexStoreError):
    """The index was replaced by a different one while a query ran."""


def answer_by_head(backend: Backend, index: str, answer: Callable[[Head], T]) -> T:
    """Return `answer` by the head of `index`: a remembered one if it still holds.

    If the query fails by a remembered head, for example because it filters by a field that another
    process has added, the head is read again, and the query is repeated if that has changed.

    Args:
        backend: The store that holds the index.
        index: The name of the index.
        answer: Answers the query, given the head.

    Returns:
        The answer by a head that held until the end.

    Raises:
        HybridSearchError: As raised by `answer` for the head as it is now.
    """
    if not isinstance(backend, RemoteBackend):
        return answer(backend.read_head(index))
    for _ in range(TRIES):
        recalled_head = backend.recall_head(index)
        head = recalled_head or backend.read_head(index)
        try:
            result = answer(head)
        except IndexChangedError:
            continue  # the backend has read the new head
        except HybridSearchError as error:
            if not (recalled_head and _may_be_outdated(error)):
                raise
            if backend.read_head(index) == head:
                raise
        else:
            # another thread may have noticed a change that this one's check then did not see
            if backend.is_remembered(index, head):
                return result
    return answer(backend.read_head(index))


def settings_digest(spec: IndexSpec) -> str:
    """Return a digest of everything, besides the document, that its index entry is made by."""
    settings = (
        spec.fingerprint,
        spec.policy,
        spec.codebook,
        spec.codes,
        spec.schema,
        passages.PASSAGE_WORDS,
        passages.WINDOW_WORDS,
        spans.MAX_WORDS,
    )
    return hashlib.sha256(str(settings).encode()).hexdigest()[:16]


def parse_settings_digest(source_hash: str) -> str:
    """Return the settings digest in a source hash, which stands behind its dot."""
    return source_hash.partition(".")[2]


def _may_be_outdated(error: HybridSearchError) -> bool:
    """Return whether an outdated head can have caused `error`."""
    if isinstance(error, ServerError):
        return error.status in (400, 404)
    return isinstance(error, (UsageError, ModelError, IndexStoreError))
