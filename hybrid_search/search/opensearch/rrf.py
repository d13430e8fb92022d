"""rrf as the server has it (from 2.19): 1 / (60 + rank), rounded half up to ten digits.

Ranks count from 1; scores count by their order alone. Before 3.5 a rank was the one within the
shard; on one shard that is the same.
"""

from __future__ import annotations

from hybrid_search.search.opensearch.base import Single, Singles

RANK_CONSTANT = 60
"""The server's default, so the body of a request leaves it out."""

DIGITS = 10**10


def rrf(scores: Singles) -> list[Single]:
    """Return the reciprocal ranks of `scores`, which are best first."""
    return [_reciprocal_score(RANK_CONSTANT + rank) for rank in range(1, len(scores) + 1)]


def _reciprocal_score(number: int) -> Single:
    """Return 1 / `number` to ten digits: half up is the floor of DIGITS / number + 1/2."""
    return Single((2 * DIGITS + number) // (2 * number) / DIGITS)
