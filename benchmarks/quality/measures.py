"""nDCG@10 and MRR@10 by passage, a turn that was cut into several passages counted once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

DEPTH = 10


def ndcg(ranked: Sequence[Hashable], right: set[Hashable]) -> float:
    """Binary nDCG@10: gain 1 for a right one at rank r divided by log2(r + 1), over that of the ideal order. Repeated items count once."""
    gains = [1 / math.log2(rank + 1) for rank, each in enumerate(_once(ranked), 1) if each in right]
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(DEPTH, len(right)) + 1))
    return sum(gains) / ideal


def reciprocal_rank(ranked: Sequence[Hashable], right: set[Hashable]) -> float:
    """1 / rank of the first right one among the first 10, else 0."""
    return next((1 / rank for rank, each in enumerate(_once(ranked), 1) if each in right), 0.0)


def _once(ranked: Sequence[Hashable]) -> list[Hashable]:
    return list(dict.fromkeys(ranked))[:DEPTH]


def grouped_mean(values: Sequence[float], groups: Sequence[str]) -> float:
    """The mean over groups of each group's mean."""
    held: dict[str, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        held.setdefault(group, []).append(value)
    means = [sum(each) / len(each) for each in held.values()]
    return sum(means) / len(means)
