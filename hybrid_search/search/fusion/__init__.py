"""Fusions by name: each takes `Legs` and alpha and gives one score a passage, float64 ``[n]``,
higher is better.
"""

from __future__ import annotations

from collections.abc import Callable

from hybrid_search.errors import UsageError
from hybrid_search.search.fusion.base import Legs, Scores
from hybrid_search.search.fusion.calibrated import calibrated
from hybrid_search.search.fusion.l2 import l2
from hybrid_search.search.fusion.min_max import min_max
from hybrid_search.search.fusion.rrf import rrf
from hybrid_search.search.fusion.z_score import z_score

__all__ = ["DEFAULT", "FUSIONS", "Fusion", "Legs", "Scores", "get_fusion"]

Fusion = Callable[[Legs, float], Scores]

DEFAULT = "calibrated"
FUSIONS: dict[str, Fusion] = {
    "calibrated": calibrated,
    "min_max": min_max,
    "l2": l2,
    "z_score": z_score,
    "rrf": rrf,
}


def get_fusion(name: str) -> Fusion:
    """The fusion called `name`. Raises UsageError."""
    if name not in FUSIONS:
        raise UsageError(f"fusion {name!r} is not one of {', '.join(FUSIONS)}")
    return FUSIONS[name]
