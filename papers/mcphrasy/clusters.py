"""Clusters of phrases against gold clusters (section 5.3 of the paper).

Made by complete linkage over the similarities of all pairs of a group, which uses only their order,
so their scale does not matter. V-measure, adjusted Rand and adjusted mutual information are those
of scikit-learn, averaged over groups; k is the number of clusters to make.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries import import_library
from benchmarks.quality.systems import System
from hybrid_search.text.types import Floats, Ints
from papers.mcphrasy import groups, synonyms
from papers.mcphrasy.groups import Group
from papers.mcphrasy.pairs import coverage, similarities

GOLD = "gold"
KS = (10, 15, 20, GOLD)
METRICS = {
    "V": "v_measure_score",
    "ARI": "adjusted_rand_score",
    "AMI": "adjusted_mutual_info_score",
}
"""V-measure, adjusted Rand index and adjusted mutual information, by scikit-learn's names."""

SOURCES: dict[str, Callable[[Path], list[Group]]] = {
    "banking77": lambda data: groups.read_intent_groups(data / "banking77/banking77.jsonl.gz"),
    "clinc150": lambda data: groups.read_intent_groups(data / "clinc150/clinc150.jsonl.gz"),
    "wordnet": lambda data: groups.group_synonyms(synonyms.load_pairs(data)[1]),
    "reviews": lambda data: groups.read(data / groups.PUBLISHED),
}
"""Where groups come from.

The paper's, of product reviews, are not in the data folder and must be named to be used.
"""

HERE = ("banking77", "clinc150", "wordnet")


def measure(system: System, data: Path, sources: Sequence[str] = HERE) -> dict[str, Any]:
    """Return the figures of each source's groups."""
    return {name: score(system, SOURCES[name](data)) for name in sources}


def score(system: System, phrase_groups: Sequence[Group]) -> dict[str, Any]:
    """Return each metric for each k, the mean over the groups.

    A group with fewer phrases than k is cut into as many clusters as it has phrases.
    """
    pairs = [pair for group in phrase_groups for pair in combinations(group.phrases, 2)]
    scores = similarities(system, [first for first, _ in pairs], [second for _, second in pairs])
    sizes = [len(group.phrases) for group in phrase_groups]
    ends = np.cumsum([size * (size - 1) // 2 for size in sizes])
    split = np.split(scores, ends[:-1])
    figures = [
        {str(k): _figures(group, group_scores, k) for k in KS}
        for group, group_scores in zip(phrase_groups, split, strict=True)
    ]
    means = {}
    for k in map(str, KS):
        by_group = [group_figures[k] for group_figures in figures]
        means[k] = {
            name: round(float(np.mean([values[name] for values in by_group])), 4)
            for name in METRICS
        }
    return {
        "groups": len(phrase_groups),
        "k": means,
        **coverage(system, [phrase for group in phrase_groups for phrase in group.phrases]),
    }


def _figures(group: Group, scores: Floats, k: int | str) -> dict[str, float]:
    cluster_count = len(set(group.clusters)) if k == GOLD else min(int(k), len(group.phrases))
    labels = cluster_phrases(scores, len(group.phrases), cluster_count)
    metrics = import_library("sklearn.metrics", "export")
    return {
        name: float(getattr(metrics, function)(group.clusters, labels))
        for name, function in METRICS.items()
    }


def cluster_phrases(scores: Floats, phrases: int, k: int) -> Ints:
    """Return the cluster of each phrase, of `k`, int32 ``[phrases]``.

    `scores` are the similarities of all pairs in the order of `itertools.combinations`.
    """
    from sklearn.cluster import AgglomerativeClustering

    distances = np.zeros((phrases, phrases))
    distances[np.triu_indices(phrases, 1)] = float(scores.max()) - scores.astype(np.float64)
    model = AgglomerativeClustering(n_clusters=k, metric="precomputed", linkage="complete")
    labels: Ints = model.fit_predict(distances + distances.T).astype(np.int32)
    return labels
