"""What an OpenSearch has from which version on: the one table that the bodies are made by."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid_search.errors import UsageError

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Feature:
    """Something that came with a version, and what to do without it."""

    name: str
    since: Version
    remedy: str


ELSE = "leave compat out: then the fusion is done here, on every version"

HYBRID = Feature("hybrid query on an index with nested fields", (2, 12, 0), ELSE)
PAGES = Feature("pages of a hybrid query (pagination_depth)", (2, 19, 0), f"ask for offset 0, or {ELSE}")
EXPAND = Feature("expand_nested_docs", (2, 19, 0), ELSE)
EXPLAIN = Feature("explanation of a hybrid query (hybrid_score_explanation)", (2, 19, 0), f"ask without explain, or {ELSE}")
RRF = Feature("rrf (score-ranker-processor)", (2, 19, 0), f'use fusion="min_max" or "l2", or {ELSE}')
INNER_HITS = Feature("inner_hits of a hybrid query", (3, 0, 0), ELSE)
Z_SCORE = Feature("z_score", (3, 0, 0), f'use fusion="min_max" or "l2", or {ELSE}')
RRF_WEIGHTS = Feature("weights for rrf", (3, 1, 0), f"use alpha=0.5, or {ELSE}")


def has(version: Version, feature: Feature) -> bool:
    """Whether an OpenSearch of `version` has `feature`."""
    return version >= feature.since


def need(version: Version, feature: Feature) -> None:
    """Raises UsageError where an OpenSearch of `version` lacks `feature`."""
    if not has(version, feature):
        asked, since = ".".join(map(str, version)), ".".join(map(str, feature.since[:2]))
        raise UsageError(f"OpenSearch {asked} has no {feature.name}: it came with {since}. Remedy: {feature.remedy}")
