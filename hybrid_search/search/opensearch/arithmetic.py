"""Fuse as the server does: normalize each leg, combine each passage's scores, sort.

This is one hybrid query on one shard. Written after opensearch-project/neural-search 3.5 to 3.9
(``processor/normalization``, ``processor/combination``, ``search/collector``). Where an earlier
release does otherwise, `docs/compat.md` says so. On several shards the server normalizes over the
hits of all of them, `window` of each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

from hybrid_search.backends.server.hybrid_techniques import (
    choose_combination,
    leg_weights,
    technique_of,
)
from hybrid_search.search.opensearch import means
from hybrid_search.search.opensearch.base import ZERO, Single, Singles
from hybrid_search.search.opensearch.l2 import l2
from hybrid_search.search.opensearch.min_max import min_max
from hybrid_search.search.opensearch.rrf import rrf
from hybrid_search.search.opensearch.z_score import z_score

Key = TypeVar("Key", bound=Hashable)
Leg = Sequence[tuple[Key, float]]
"""The passages that one sub-query returned, best first: keys and scores."""

NORMALIZATIONS: dict[str, Callable[[Singles], list[Single]]] = {
    "min_max": min_max,
    "l2": l2,
    "z_score": z_score,
    "rrf": rrf,
}
COMBINATIONS: dict[str, Callable[[Singles, Singles], Single]] = {
    "arithmetic_mean": means.arithmetic,
    "geometric_mean": means.geometric,
    "harmonic_mean": means.harmonic,
    "rrf": means.weighted_sum,
}
HASH_TABLE_SIZE, LOAD_FACTOR = 16, 0.75
"""The first size of a Java HashMap, and how full it gets before it doubles."""


def score_from_cosine(cosine: float) -> float:
    """Return the score that OpenSearch's cosinesimil gives a vector, (1 + cosine) / 2.

    By ``score_mode: max`` a passage has that of its best span.
    """
    return float(max((Single(1.0) + Single(cosine)) / Single(2.0), ZERO))


def fuse_by_alpha(
    lexical: Leg[Key],
    semantic: Leg[Key],
    alpha: float,
    fusion: str,
    *,
    window: int | None = None,
    numbers: Mapping[Key, int] | None = None,
    explain: bool = False,
) -> list[tuple[Key, float]]:
    """Return what the server would answer to our two legs: their passages by fused score.

    `lexical` has BM25 scores, `semantic` the server's scores of the span leg
    (`score_from_cosine`), both best first. Both are needed at alpha 0 and 1, too: the server runs
    both, and lists with 0 what only a leg of weight 0 found. Each is cut to `window` (the
    ``pagination_depth``). `numbers` and `explain` are those of `fuse`. A fusion that the server
    lacks is a UsageError.
    """
    return fuse(
        [lexical[:window], semantic[:window]],
        leg_weights(alpha),
        technique_of(fusion),
        numbers=numbers,
        explain=explain,
    )


def fuse(
    legs: Sequence[Leg[Key]],
    weights: Sequence[float],
    technique: str = "min_max",
    combination: str | None = None,
    *,
    numbers: Mapping[Key, int] | None = None,
    explain: bool = False,
) -> list[tuple[Key, float]]:
    """Return the passages of any number of `legs` by fused score.

    Scores are those that the server's JSON shows: the shortest digits that mean the
    single-precision number.

    The server orders ties by the places of the shard's Lucene document numbers in its hash table.
    With `numbers` (what sorting by ``_doc`` returns) so does this; without, ties keep the order in
    which they first appear, leg by leg. With `explain`, scores are normalized twice: a server that
    is asked to explain normalizes what it has normalized, and its scores are made of that.

    A combination that the server would refuse is a UsageError.
    """
    normalize = NORMALIZATIONS[technique]
    combine = COMBINATIONS[choose_combination(technique, combination)]
    scores_by_key: dict[Key, list[Single]] = {}
    for number, leg in enumerate(legs):
        # to the server a sub-query that scores a passage 0 has not found it
        returned = [(key, Single(score)) for key, score in leg if score > 0]
        scores = normalize([score for _, score in returned])
        for (key, _), score in zip(returned, normalize(scores) if explain else scores, strict=True):
            scores_by_key.setdefault(key, [ZERO] * len(legs))[number] = score
    singles = [Single(weight) for weight in weights]
    combined = {
        key: combine(scores_by_key[key], singles)
        for key in _order_by_hash(list(scores_by_key), numbers)
    }
    return [
        (key, float(str(combined[key]))) for key in sorted(combined, key=lambda key: -combined[key])
    ]


def _order_by_hash(keys: list[Key], numbers: Mapping[Key, int] | None) -> list[Key]:
    """Return `keys` in the order in which a HashMap of their document numbers lists them.

    By bucket, and inside a bucket the last inserted first.
    """
    if numbers is None:
        return keys
    size = HASH_TABLE_SIZE
    while len(keys) > LOAD_FACTOR * size:
        size *= 2
    latest_first = keys[::-1]  # computeIfAbsent inserts at the head of a bucket
    return sorted(latest_first, key=lambda key: (numbers[key] ^ numbers[key] >> 16) & (size - 1))
