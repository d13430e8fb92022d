"""Clusters of phrases (section 5.3 of the paper): complete linkage over the similarities of all pairs of a group, against gold clusters.

Complete linkage asks only for the order of similarities, so their scale is nothing. V-measure, adjusted Rand and adjusted mutual information are
those of scikit-learn, averaged over groups; k is the number of clusters that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.mcphrasy import groups, synonyms
from benchmarks.quality.mcphrasy.groups import Group
from benchmarks.quality.mcphrasy.pairs import coverage, similarities
from benchmarks.quality.systems.base import System
from benchmarks.quality.systems.needs import library
from hybrid_search.types import Floats, Ints

GOLD = "gold"
KS = (10, 15, 20, GOLD)
METRICS = {"V": "v_measure_score", "ARI": "adjusted_rand_score", "AMI": "adjusted_mutual_info_score"}
"""V-measure, adjusted Rand index and adjusted mutual information, by scikit-learn's names."""

SOURCES: dict[str, Callable[[Path], list[Group]]] = {
    "banking77": lambda data: groups.of_intents(data / "banking77/banking77.jsonl.gz"),
    "clinc150": lambda data: groups.of_intents(data / "clinc150/clinc150.jsonl.gz"),
    "wordnet": lambda data: groups.of_synonyms(synonyms.here(data)[1]),
    "reviews": lambda data: groups.read(data / groups.PUBLISHED),
}
"""Where groups come from. The paper's, of reviews, is not in the data folder and must be asked for by name."""

HERE = ("banking77", "clinc150", "wordnet")


def measure(system: System, data: Path, sources: Sequence[str] = HERE) -> dict[str, Any]:
    """The figures of each source's groups."""
    return {name: score(system, SOURCES[name](data)) for name in sources}


def score(system: System, found: Sequence[Group]) -> dict[str, Any]:
    """Each metric for each k, the mean over the groups. A group with fewer phrases than k is cut into as many as it has."""
    pairs = [pair for group in found for pair in combinations(group.phrases, 2)]
    scores = similarities(system, [first for first, _ in pairs], [second for _, second in pairs])
    split = np.split(scores, np.cumsum([len(group.phrases) * (len(group.phrases) - 1) // 2 for group in found])[:-1])
    figures = [{str(k): _figures(group, each, k) for k in KS} for group, each in zip(found, split, strict=True)]
    means = {str(k): {name: round(float(np.mean([each[str(k)][name] for each in figures])), 4) for name in METRICS} for k in KS}
    return {"groups": len(found), "k": means, **coverage(system, [phrase for group in found for phrase in group.phrases])}


def _figures(group: Group, scores: Floats, k: int | str) -> dict[str, float]:
    wanted = len(set(group.clusters)) if k == GOLD else min(int(k), len(group.phrases))
    labels = clustered(scores, len(group.phrases), wanted)
    metrics = library("sklearn.metrics", "export")
    return {name: float(getattr(metrics, function)(group.clusters, labels)) for name, function in METRICS.items()}


def clustered(scores: Floats, phrases: int, k: int) -> Ints:
    """The cluster of each phrase, int32 ``[phrases]``, of `k`, from the similarities of all pairs in the order of `itertools.combinations`."""
    distances = np.zeros((phrases, phrases))
    distances[np.triu_indices(phrases, 1)] = float(scores.max()) - scores.astype(np.float64)
    model = library("sklearn.cluster", "export").AgglomerativeClustering(n_clusters=k, metric="precomputed", linkage="complete")
    found: Ints = model.fit_predict(distances + distances.T).astype(np.int32)
    return found
