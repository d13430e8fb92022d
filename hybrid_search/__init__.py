"""Span-level hybrid search: BM25 and span cosines fused, with the offsets of the matching words.

    python -m hybrid_search.ingest --index calls
    >>> import hybrid_search
    >>> hybrid_search.query("refund request", alpha=0.5)

Input: documents (JSON lines, tables, or another server's index) and phrases. Output: `Result`s.

Modules in reading order: `api` and `client` (every call), `text` (documents, passages, spans),
`encoder` (the model), `ingest` (documents into an index), `backends` (where indexes live), `search`
(phrases to hits), `topics` (every mention of a topic), `discover` (what is said, in groups),
`maintenance`, `observability`, `serve` and `agents` (over HTTP, and as tools), `retrievers` (for
other frameworks), `cli`; `config` and `credentials` read the environment, `errors` has the
exception hierarchy. The docstring of each package describes its modules.
"""

from typing import TYPE_CHECKING, Any

from hybrid_search import config
from hybrid_search.api import best_spans, check_quote, connect, phrase_similarity, query
from hybrid_search.errors import (
    AccessError,
    DamagedIndexError,
    DeviceError,
    DocumentMissingError,
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
from hybrid_search.search.hit import DocumentView, Hit, Span, TurnPlace
from hybrid_search.search.query import QueryOptions
from hybrid_search.search.quote import QuoteCheck, QuotePlace
from hybrid_search.search.result import Result
from hybrid_search.topics.match import Match
from hybrid_search.topics.matches import Matches
from hybrid_search.topics.topic import Topic
from hybrid_search.topics.topics import Topics

if TYPE_CHECKING:
    from hybrid_search.async_client import AsyncClient

__version__ = "0.1.0"

config.disable_telemetry()  # must run before anything imports ONNX Runtime

__all__ = [
    "AccessError",
    "AsyncClient",
    "DamagedIndexError",
    "DeviceError",
    "DocumentMissingError",
    "DocumentView",
    "Hit",
    "HybridSearchError",
    "IndexBusyError",
    "IndexMissingError",
    "IndexStoreError",
    "InputError",
    "Match",
    "Matches",
    "MissingExtraError",
    "ModelError",
    "QueryOptions",
    "QuoteCheck",
    "QuotePlace",
    "Result",
    "ServerError",
    "Span",
    "Topic",
    "Topics",
    "TurnPlace",
    "UsageError",
    "WorkerError",
    "__version__",
    "best_spans",
    "check_quote",
    "connect",
    "phrase_similarity",
    "query",
]


def __dir__() -> list[str]:
    """Return all public names, including the lazily imported ones."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import `AsyncClient` on first use, to keep importing the package fast."""
    if name == "AsyncClient":
        from hybrid_search.async_client import AsyncClient

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
