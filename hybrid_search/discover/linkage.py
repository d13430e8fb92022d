"""Clusters of vectors, and the words that tell them apart: scikit-learn computes both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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


def cluster_vectors(vectors: Floats, limit: float) -> Integers:
    """Return the cluster of each unit vector, int64 ``[n]``, numbered from 0.

    By average linkage: two clusters are merged while the mean cosine between the one's vectors and
    the other's is at least ``1 - limit``. `limit` is the largest mean distance, 1 - cosine, 0..2,
    and `vectors` are float32 ``[n, dimension]``, of length 1.
    """
    if len(vectors) < 2:
        return np.zeros(len(vectors), dtype=np.int64)
    distances = np.clip(1.0 - vectors @ vectors.T, 0.0, 2.0)
    np.fill_diagonal(distances, 0.0)
    model = AgglomerativeClustering(
        n_clusters=None, distance_threshold=limit, metric="precomputed", linkage="average"
    )
    labels: Integers = model.fit_predict(distances).astype(np.int64)
    return labels


def find_telling_words(texts: Sequence[Sequence[str]], count: int) -> list[list[str]]:
    """Return up to `count` words of each text that are frequent in it, not in others, by tf-idf."""
    if not any(texts):
        return [[] for _ in texts]
    model = TfidfVectorizer(analyzer=lambda words: words, sublinear_tf=True)
    weights = model.fit_transform(texts)
    names = model.get_feature_names_out()
    telling_words = []
    for number in range(len(texts)):
        row = weights[[number]].toarray()[0]
        largest = np.argsort(-row, kind="stable")[:count]
        telling_words.append([str(names[column]) for column in largest if row[column]])
    return telling_words
