"""Span-level hybrid search: BM25 and span-cosine scores fused, with the character offsets of the words that matched.

python -m hybrid_search.ingest --index calls
>>> import hybrid_search
>>> hybrid_search.query("refund request", alpha=0.5)
"""

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
)
from hybrid_search.results import Hit, Result, Span

__version__ = "0.1.0"

__all__ = [
    "AccessError",
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
    "__version__",
    "best_spans",
    "connect",
    "phrase_similarity",
    "query",
]
