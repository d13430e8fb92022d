"""Which covering windows propose the best passages: by their length, and by how many numbers.

``python -m benchmarks.quality.windows``. Proposed are the 600 passages of the nearest windows of a
phrase, searched exhaustively, so that no error of a graph is counted, and the 100 that BM25 finds.
Figures are the shares of the ten best of all passages among them: by the cosine of the best span,
and by the score that a page is ordered by.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import results
from benchmarks.markdown import table
from benchmarks.phrases import phrases
from benchmarks.quality.collection import Collection, ingest_task
from benchmarks.quality.recall import DEPTH
from benchmarks.quality.tasks import TASKS
from benchmarks.quality.vectors import cosines_with_many
from hybrid_search.backends.server.reach import BY_GRAPH, BY_WORDS
from hybrid_search.backends.types import Request
from hybrid_search.encoder.base import span_prior
from hybrid_search.search import phrase_vector
from hybrid_search.text import spans, window_policy
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Floats, WordCodes

TASK = "calls_sgd"

POLICIES = ("8/1", "6/1", "5/1", "4/1", "3/1")
NUMBERS = (128, 192, 288)

Keys = NDArray[np.int64]


def measure(collection: Collection, phrase_texts: Sequence[str]) -> dict[str, Any]:
    """Return vectors a passage, and shares of the best passages, by policy and numbers."""
    prior = span_prior(collection.model.encoder)
    assert prior, "the model has no prior, by which pages are ordered"
    encoder = collection.model.encoder
    vectors = np.array([phrase_vector.query_vector(encoder, text) for text in phrase_texts])
    cut = {numbers: cut_vectors(vectors, numbers) for numbers in NUMBERS}
    windows = [(policy, numbers) for policy in POLICIES for numbers in NUMBERS]
    keys, counts, cosines, scores = [], [], [], []
    nearest: dict[tuple[str, int], list[Floats]] = {window: [] for window in windows}
    for key, tokens in _iterate_codes(collection):
        keys.append(key)
        best_cosines, best_scores = find_best_spans(tokens, vectors, prior)
        cosines.append(best_cosines)
        scores.append(best_scores)
        counts.append(
            [len(window_policy.window_bounds(tokens.counts, policy)) for policy in POLICIES]
        )
        for policy, numbers in windows:
            nearest[policy, numbers].append(find_nearest(tokens, cut[numbers], policy))
    numbers_of_keys = np.array(keys)
    by_words = [
        np.isin(numbers_of_keys, _find_by_words(collection, text, vector))
        for text, vector in zip(phrase_texts, vectors, strict=True)
    ]
    best = {"cosine": np.array(cosines), "score": np.array(scores)}
    return {
        "passages": len(keys),
        "phrases": len(phrase_texts),
        "vectors a passage": dict(
            zip(POLICIES, np.mean(counts, axis=0).round(1).tolist(), strict=True)
        ),
        "proposed": {
            f"{policy}, {numbers} numbers": {
                name: share_of_best(np.array(nearest[policy, numbers]), by_words, exact)
                for name, exact in best.items()
            }
            for policy, numbers in windows
        },
    }


def _iterate_codes(collection: Collection) -> Iterator[tuple[int, WordCodes]]:
    """Yield the number and the word codes of each passage that has a span."""
    for scanned in collection.client.backend.scan_codes(collection.task.name):
        if len(scanned.tokens.norms):
            yield scanned.key, scanned.tokens


def find_best_spans(tokens: WordCodes, vectors: Floats, prior: SpanPrior) -> tuple[Floats, Floats]:
    """Return a passage's best cosine and best score with each vector, float32 ``[phrases]``."""
    cosines = cosines_with_many(vectors, tokens)
    (priors,) = prior.score_passages([tokens])
    return cosines.max(axis=0), (cosines + priors[:, None]).max(axis=0)


def cut_vectors(vectors: Floats, numbers: int) -> Floats:
    """Return unit vectors cut to their first numbers, float32 ``[phrases, numbers]``."""
    return np.array([spans.scale_to_unit(vector[:numbers]) for vector in vectors])


def find_nearest(tokens: WordCodes, vectors: Floats, policy: str) -> Floats:
    """Return the cosine of a passage's nearest window with each vector, float32 ``[phrases]``.

    Windows have as many numbers as the vectors, which are float32 ``[phrases, numbers]``.
    """
    windows = window_policy.window_vectors(tokens, policy, vectors.shape[1])
    nearest: Floats = (windows @ vectors.T).max(axis=0)
    return nearest


def _find_by_words(collection: Collection, text: str, vector: Floats) -> Keys:
    """Return the numbers of the passages that BM25 proposes."""
    request = Request(text, vector, BY_WORDS[0], semantic=False)
    found = collection.client.backend.find(collection.task.name, request)
    return np.array([passage.key for passage in found.passages], np.int64)


def share_of_best(
    nearest: Floats, by_words: Sequence[NDArray[np.bool_]], exact: Floats, count: int = BY_GRAPH[0]
) -> float:
    """Return the share of the `DEPTH` best passages that are proposed.

    Args:
        nearest: The cosine of each passage's nearest window, float32 ``[passages, phrases]``.
        by_words: For each phrase, whether BM25 proposes the passages, bool ``[passages]``.
        exact: What the best passages are the best by, float32 ``[passages, phrases]``.
        count: How many passages are proposed by their windows.
    """
    shares = []
    for column, is_proposed in enumerate(by_words):
        best = np.argsort(-exact[:, column], kind="stable")[:DEPTH]
        by_windows = np.argsort(-nearest[:, column], kind="stable")[:count]
        shares.append(np.mean(is_proposed[best] | np.isin(best, by_windows)))
    return round(float(np.mean(shares)), 4)


def windows_table() -> str:
    """Render the shares of the best passages by policy and numbers."""
    measured = results.read_result(f"windows-{TASK}", results.QUALITY)
    return table(
        "proposed of the ten best by cosine, by score",
        ("vectors a passage", *(f"{numbers} numbers" for numbers in NUMBERS)),
        POLICIES,
        lambda policy: [
            f"{measured['vectors a passage'][policy]:.1f}",
            *(
                "{cosine:.3f}, {score:.3f}".format(
                    **measured["proposed"][f"{policy}, {numbers} numbers"]
                )
                for numbers in NUMBERS
            ),
        ],
    )


TABLES = {"windows": windows_table}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=results.DATA)
    options = parser.parse_args()
    collection = ingest_task(TASKS[TASK], options.data)
    figures = measure(collection, phrases(options.data))
    results.write(f"windows-{TASK}", figures, results.QUALITY)


if __name__ == "__main__":
    main()
