"""compat="opensearch": rank as OpenSearch's own ``hybrid`` query does.

In: both legs of a query. Out: passages with the scores that the server would give them.

Modules in reading order: `ranking` (has the server fuse where it can, else does it here),
`arithmetic` (the server's fusion), `min_max`, `l2`, `z_score`, `rrf` (its normalizations), `means`
(its combinations), `base` (its single-precision numbers). The request for a server, `hybrid_body`,
is made in backends/server. A new normalization is a module and a line in `NORMALIZATIONS`.
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
