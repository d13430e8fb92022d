"""Span-level hybrid search: BM25 and span-cosine scores fused, with the character offsets of the
words that matched.

python -m hybrid_search.ingest --index calls
>>> import hybrid_search
>>> hybrid_search.query("refund request", alpha=0.5)
"""

from typing import TYPE_CHECKING, Any

from hybrid_search.api import best_spans, connect, phrase_similarity, query
from hybrid_search.errors import (
    AccessError,
    DeviceError,
    HybridSearchError,
    IndexBusyError,
    IndexMissingError,
    IndexStoreError,
    InputError,
    MissingExtraError,
    ModelError,
    ServerError,
    UsageError,
    WorkerError,
)
from hybrid_search.search.result import Hit, Result, Span

if TYPE_CHECKING:
    from hybrid_search.async_client import AsyncClient

__version__ = "0.1.0"

__all__ = [
    "AccessError",
    "AsyncClient",
    "DeviceError",
    "Hit",
    "HybridSearchError",
    "IndexBusyError",
    "IndexMissingError",
    "IndexStoreError",
    "InputError",
    "MissingExtraError",
    "ModelError",
    "Result",
    "ServerError",
    "Span",
    "UsageError",
    "WorkerError",
    "__version__",
    "best_spans",
    "connect",
    "phrase_similarity",
    "query",
]


def __getattr__(name: str) -> Any:
    """`AsyncClient` when it is asked for: it needs all that a client needs, and importing the
    package is to stay light.
    """
    if name == "AsyncClient":
        from hybrid_search.async_client import AsyncClient

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
