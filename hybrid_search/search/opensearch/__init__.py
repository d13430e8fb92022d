"""compat="opensearch": what OpenSearch's own hybrid query would answer.

The request for a server that has it, its arithmetic for all others.
"""

from __future__ import annotations

from hybrid_search.backends.server.hybrid_request import hybrid_body
from hybrid_search.backends.server.hybrid_techniques import technique_of
from hybrid_search.search.opensearch.arithmetic import (
    fuse,
    fuse_by_alpha,
    score_from_cosine,
)

__all__ = ["fuse", "fuse_by_alpha", "hybrid_body", "score_from_cosine", "technique_of"]
