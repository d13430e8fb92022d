"""l2 as the server has it: each score divided by the Euclidean length of the leg's scores.

s / sqrt(sum of s^2), the same in every release from 2.12.
"""

from __future__ import annotations

import math

from hybrid_search.search.opensearch.base import ZERO, Single, Singles


def l2(scores: Singles) -> list[Single]:
    """Return the scores of one leg divided by their length; 0 if that is 0."""
    squares = ZERO
    for score in scores:
        squares += score * score
    length = Single(math.sqrt(squares))
    return [score / length if length else ZERO for score in scores]
