"""The features of OpenSearch that requests depend on, and the versions that brought them."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid_search.errors import UsageError

ServerVersion = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature that came with a version, and what to do without it."""

    name: str
    since: ServerVersion
    remedy: str


FALLBACK_REMEDY = "leave compat out: then the fusion is done here, on every version"

HYBRID = Feature("hybrid query on an index with nested fields", (2, 12, 0), FALLBACK_REMEDY)
PAGES = Feature(
    "pages of a hybrid query (pagination_depth)",
    (2, 19, 0),
    f"ask for offset 0, or {FALLBACK_REMEDY}",
)
EXPAND = Feature("expand_nested_docs", (2, 19, 0), FALLBACK_REMEDY)
EXPLAIN = Feature(
    "explanation of a hybrid query (hybrid_score_explanation)",
    (2, 19, 0),
    f"ask without explain, or {FALLBACK_REMEDY}",
)
RRF = Feature(
    "rrf (score-ranker-processor)",
    (2, 19, 0),
    f'use fusion="min_max" or "l2", or {FALLBACK_REMEDY}',
)
INNER_HITS = Feature("inner_hits of a hybrid query", (3, 0, 0), FALLBACK_REMEDY)
Z_SCORE = Feature("z_score", (3, 0, 0), f'use fusion="min_max" or "l2", or {FALLBACK_REMEDY}')
RRF_WEIGHTS = Feature("weights for rrf", (3, 1, 0), f"use alpha=0.5, or {FALLBACK_REMEDY}")


def has(version: ServerVersion, feature: Feature) -> bool:
    """Return whether an OpenSearch of `version` has `feature`."""
    return version >= feature.since


def require(version: ServerVersion, feature: Feature) -> None:
    """Check that an OpenSearch of `version` has `feature`.

    Raises:
        UsageError: If it does not.
    """
    if not has(version, feature):
        version_text, since = ".".join(map(str, version)), ".".join(map(str, feature.since[:2]))
        raise UsageError(
            f"OpenSearch {version_text} has no {feature.name}: it came with {since}. "
            f"Remedy: {feature.remedy}"
        )
