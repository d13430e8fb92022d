"""min_max as the server has it, its default: (s - min) / (max - min) over the leg's scores.

The worst of a leg counts 0.001, not 0: more than a passage that was better by less than that. A leg
whose scores are all equal, so also a lone hit, counts 1 throughout. The same in every release from
2.12. `lower_bounds` (3.0) and `upper_bounds` (3.2) are left out: no request here uses them.
"""

from __future__ import annotations

from hybrid_search.search.opensearch.base import FLOOR, ONE, Single, Singles


def min_max(scores: Singles) -> list[Single]:
    """Return the scores of one leg, scaled to 0.001..1."""
    if not scores or min(scores) == max(scores):
        return [ONE] * len(scores)
    low, width = min(scores), max(scores) - min(scores)
    return [(score - low) / width or FLOOR for score in scores]
