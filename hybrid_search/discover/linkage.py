"""Clusters of vectors, and the words that tell them apart: scikit-learn computes both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hybrid_search.errors import MissingExtraError
from hybrid_search.system import install_command
from hybrid_search.text.types import Floats
from hybrid_search.topics.types import Integers

try:
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.feature_extraction.text import TfidfVectorizer
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        f"clusters of phrases need scikit-learn: {install_command('cluster')}"
    ) from missing


def cluster_distances(
    distances: NDArray[np.floating], *, linkage: str, clusters: int | None, limit: float | None
) -> Integers:
    """Return the cluster of each row, int64 ``[n]``, numbered from 0.

    Args:
        distances: Between all pairs, symmetric ``[n, n]``.
        linkage: average, complete or single.
        clusters: How many clusters there shall be, 1 to n; None to go by `limit`.
        limit: Clusters that are further apart are not merged; None to go by `clusters`.
    """
    model = AgglomerativeClustering(
        n_clusters=clusters, distance_threshold=limit, metric="precomputed", linkage=linkage
    )
    labels: Integers = model.fit_predict(distances).astype(np.int64)
    return labels


def cluster_vectors(vectors: Floats, limit: float) -> Integers:
    """Return the cluster of each unit vector, int64 ``[n]``, numbered from 0.

    By average linkage: two clusters are merged while the mean cosine between the one's vectors and
    the other's is at least ``1 - limit``.

    Args:
        vectors: float32 ``[n, dimension]``, of length 1.
        limit: The largest mean distance, 1 - cosine, 0..2.
    """
    if len(vectors) < 2:
        return np.zeros(len(vectors), dtype=np.int64)
    distances = np.clip(1.0 - vectors @ vectors.T, 0.0, 2.0)
    np.fill_diagonal(distances, 0.0)
    return cluster_distances(distances, linkage="average", clusters=None, limit=limit)


def find_telling_words(texts: Sequence[Sequence[str]], count: int) -> list[list[str]]:
    """Return the words of each text that are frequent in it and not in the others, by tf-idf.

    Args:
        texts: The words of each text.
        count: How many words to return of each text, at most.
    """
    if not any(texts):
        return [[] for _ in texts]
    model = TfidfVectorizer(analyzer=lambda words: words, sublinear_tf=True)
    weights = model.fit_transform(texts)
    names = model.get_feature_names_out()
    rows = (weights[[number]].toarray()[0] for number in range(len(texts)))
    return [_choose_largest(names, row, count) for row in rows]


def _choose_largest(names: NDArray[np.str_], weights: Floats, count: int) -> list[str]:
    """Return the names with the largest weights, without those of weight 0."""
    columns = np.argsort(-weights, kind="stable")[:count]
    return [str(names[column]) for column in columns if weights[column]]
