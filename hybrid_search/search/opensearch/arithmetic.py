"""The server's fusion of the legs of one hybrid query on one shard: normalize each leg, combine
each passage's scores, sort.

Written after opensearch-project/neural-search 3.5 to 3.9 (``processor/normalization``,
``processor/combination``, ``search/collector``). Where an earlier release does otherwise,
`docs/compat.md` says so. On several shards the server normalizes over the hits of all of them,
`window` of each.
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
"""What one sub-query returned, best first: keys of passages and their scores."""

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
"""A Java HashMap's first size, and how full it gets before it doubles."""


def score_from_cosine(cosine: float) -> float:
    """The score that OpenSearch's cosinesimil gives a vector, (1 + cosine) / 2; by ``score_mode:
    max`` that of a passage's best span.
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
    """What the server would answer to our two legs: every passage of either, by fused score.

    `lexical` has BM25 scores, `semantic` the server's scores of the span leg (`of_cosine`), both
    best first, both also at alpha 0 and 1: the server runs both, and lists what only a leg of
    weight 0 found with 0. Each is cut to `window` (the ``pagination_depth``). `numbers` and
    `explained` are those of `fuse`. Raises UsageError for a fusion that the server does not have.
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
    """Fuse any number of `legs`.

    Scores are those that the server's JSON shows: the shortest digits that mean the
    single-precision number.

    The server orders ties by where its hash table has the Lucene document numbers of the shard;
    with `numbers` (what sorting by ``_doc`` returns) so does this. Without, they keep the order in
    which they first appear, leg by leg. `explained`: asked to explain, the server normalizes what
    it has normalized, and that is what its scores are then made of. Raises UsageError for what the
    server would refuse.
    """
    normalize, combine = (
        NORMALIZATIONS[technique],
        COMBINATIONS[choose_combination(technique, combination)],
    )
    scores_by_key: dict[Key, list[Single]] = {}
    for number, leg in enumerate(legs):
        returned = [
            (key, Single(score)) for key, score in leg if score > 0
        ]  # a sub-query that scores 0 has not found it, says the server
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
    """`keys` as a HashMap of their document numbers lists them: by bucket, and in a bucket the last
    to come first.
    """
    if numbers is None:
        return keys
    size = HASH_TABLE_SIZE
    while len(keys) > LOAD_FACTOR * size:
        size *= 2
    latest_first = keys[::-1]  # computeIfAbsent puts what is new at the head of its bucket
    return sorted(latest_first, key=lambda key: (numbers[key] ^ numbers[key] >> 16) & (size - 1))
