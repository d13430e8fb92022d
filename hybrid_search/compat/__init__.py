"""compat="opensearch": what OpenSearch's own hybrid query would answer. The request for a server that has it, its arithmetic for all others."""

from __future__ import annotations

from hybrid_search.compat.arithmetic import fuse, fused, of_cosine, technique_of
from hybrid_search.compat.bodies import hybrid_body

__all__ = ["fuse", "fused", "hybrid_body", "of_cosine", "technique_of"]
