"""The peers: which program, on which store, with which weights."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import cast

from benchmarks.peers import programs
from benchmarks.peers.types import Program
from hybrid_search.system import DISTRIBUTION


class Store(Enum):
    """Where the index of a peer lies."""

    EMBEDDED = "embedded"
    OPENSEARCH = "OpenSearch"


class Weights(Enum):
    """What makes the vectors of a peer."""

    NONE = "no vectors"
    BASE = "the base, by torch"
    BASE_GRAPH = "the base, exported and in int8"
    SHIPPED = "the model that ships"


@dataclass(frozen=True, slots=True)
class Peer:
    """A way to search that is measured.

    Attributes:
        label: Its name in the tables.
        module: The module of `programs` that a user would write.
        distributions: The packages whose versions are reported.
        store: Where its index lies.
        weights: What makes its vectors.
        documentation: The page that its program follows.
        note: What a reader of the tables has to know of it.
    """

    label: str
    module: str
    distributions: tuple[str, ...]
    store: Store
    weights: Weights
    documentation: str
    note: str = ""

    @property
    def has_spans(self) -> bool:
        """Whether its answers say which words matched."""
        return self.module == OURS

    def load(self) -> Program:
        """Import its program."""
        return cast("Program", importlib.import_module(f"{programs.__name__}.{self.module}"))

    def read_source(self) -> str:
        """Return the source of its program."""
        folder = Path(str(programs.__file__)).parent
        return (folder / f"{self.module}.py").read_text(encoding="utf-8")

    def list_versions(self) -> dict[str, str]:
        """Return the installed versions of its packages.

        Raises:
            SystemExit: If one is not installed; it says what to do.
        """
        try:
            return {name: version(name) for name in self.distributions}
        except PackageNotFoundError as error:
            raise SystemExit(
                f"{self.label}: {error.name} is not installed; make peers installs all peers"
            ) from error


OURS = "span_search"
_DOCS = "docs/query.md"

PEERS = {
    "bm25s": Peer(
        "bm25s",
        "bm25s_keywords",
        ("bm25s", "PyStemmer"),
        Store.EMBEDDED,
        Weights.NONE,
        "https://github.com/xhluca/bm25s",
        "words alone",
    ),
    "txtai": Peer(
        "txtai",
        "txtai_hybrid",
        ("txtai", "faiss-cpu", "sentence-transformers"),
        Store.EMBEDDED,
        Weights.BASE,
        "https://neuml.github.io/txtai/embeddings/",
        "filters after it has searched",
    ),
    "lancedb": Peer(
        "LanceDB",
        "lancedb_hybrid",
        ("lancedb", "sentence-transformers"),
        Store.EMBEDDED,
        Weights.BASE,
        "https://docs.lancedb.com/search/hybrid-search",
    ),
    "langchain": Peer(
        "LangChain",
        "langchain_ensemble",
        ("langchain-community", "langchain-classic", "langchain-huggingface", "rank-bm25"),
        Store.OPENSEARCH,
        Weights.BASE,
        "https://docs.langchain.com/oss/python/integrations/vectorstores/opensearch",
        "its BM25 is in memory, and its bytes are not counted",
    ),
    "haystack": Peer(
        "Haystack",
        "haystack_hybrid",
        ("haystack-ai", "opensearch-haystack", "sentence-transformers-haystack"),
        Store.OPENSEARCH,
        Weights.BASE,
        "https://docs.haystack.deepset.ai/docs/opensearchhybridretriever",
    ),
    "spans-base": Peer(
        "hybrid_search, base weights",
        OURS,
        (DISTRIBUTION,),
        Store.EMBEDDED,
        Weights.BASE_GRAPH,
        _DOCS,
        "neither calibration nor prior were fitted to these weights",
    ),
    "spans": Peer("hybrid_search", OURS, (DISTRIBUTION,), Store.EMBEDDED, Weights.SHIPPED, _DOCS),
    "spans-opensearch": Peer(
        "hybrid_search", OURS, (DISTRIBUTION,), Store.OPENSEARCH, Weights.SHIPPED, _DOCS
    ),
}
"""All peers by the names of their results, in the order of the tables."""
