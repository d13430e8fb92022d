"""Fusions by name: each combines the two scores of a passage into one.

Input: `Legs` (search/types.py), the scores and ranks of both legs, and alpha. Output: float64
``[n]``, higher is better.

Modules: `base` (the definition of alpha), and one for each name. A new fusion is a module with one
function, a last line in `FUSIONS`, and its name in `FUSION_NAMES` of search/query.py, of which
signatures and help are made without numpy. Add its cases to tests/search/test_fusion.py.
"""

from __future__ import annotations

from collections.abc import Callable

from hybrid_search.errors import UsageError
from hybrid_search.search.fusion.calibrated import fuse_calibrated
from hybrid_search.search.fusion.l2 import l2
from hybrid_search.search.fusion.min_max import min_max
from hybrid_search.search.fusion.rrf import rrf
from hybrid_search.search.fusion.z_score import z_score
from hybrid_search.search.types import Legs, Scores

__all__ = ["FUSIONS", "Fusion", "get_fusion"]

Fusion = Callable[[Legs, float], Scores]

FUSIONS: dict[str, Fusion] = {
    "calibrated": fuse_calibrated,
    "min_max": min_max,
    "l2": l2,
    "z_score": z_score,
    "rrf": rrf,
}


def get_fusion(name: str) -> Fusion:
    """Return the fusion called `name`; raise UsageError if it does not exist."""
    if name not in FUSIONS:
        raise UsageError(f"fusion {name!r} is not one of {', '.join(FUSIONS)}")
    return FUSIONS[name]
