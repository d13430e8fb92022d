"""Fit the boundary network on labelled gaps, and tell how well it separates them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier

from export.boundaries.encoded import EncodedText
from export.boundaries.gaps import LabelledText, gap_vectors
from hybrid_search.text.best_passages import Flags
from hybrid_search.text.boundaries import (
    BoundaryModel,
    boundary_probabilities,
)
from hybrid_search.text.types import Floats

UNITS = 32
EPOCHS = 6
BATCH = 512
RATE = 1e-3
DECAY = 1.0
"""The L2 penalty, as scikit-learn counts it."""

SAMPLED = 50
"""One gap in this many tells how large the vectors are."""

HELD_OUT = 8
"""One text in this many is measured on, and not trained on."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelledEncoding:
    """A labelled text and its encoding."""

    labelled: LabelledText
    encoded: EncodedText


def fit_boundaries(
    examples: Sequence[LabelledEncoding], dimension: int, seed: int
) -> BoundaryModel:
    """Return the network that predicts the labels from the vectors on both sides of a gap.

    Its weights are rounded as they are stored.

    Args:
        examples: What it learns from.
        dimension: The dimension of the vectors.
        seed: Of the initial weights and the order of the gaps.
    """
    known = [example.labelled.known for example in examples]
    labels = np.concatenate(
        [example.labelled.labels[part] for example, part in zip(examples, known, strict=True)]
    )
    vectors = np.empty((len(labels), 2 * dimension), dtype=np.float32)  # gigabytes: no copy
    start = 0
    for example, part in zip(examples, known, strict=True):
        end = start + int(part.sum())
        vectors[start:end] = gap_vectors(example.encoded.cut(dimension))[part]
        start = end
    return fit_network(vectors, labels, seed)


def fit_network(vectors: Floats, labels: Flags, seed: int) -> BoundaryModel:
    """Return the network for float32 ``[gaps, 2 * dimension]`` vectors, which are scaled in place.

    They are divided by the standard deviation of a sample of them, and the first weights take that
    back.
    """
    spread = np.float32(vectors[::SAMPLED].std())
    vectors /= spread
    classifier = MLPClassifier(
        (UNITS,),
        alpha=DECAY,
        batch_size=min(BATCH, len(vectors)),
        learning_rate_init=RATE,
        max_iter=EPOCHS,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is ours
        classifier.fit(vectors, labels)
    (hidden, output), (hidden_bias, output_bias) = classifier.coefs_, classifier.intercepts_
    stored_hidden = (hidden / spread).astype(np.float16)
    return BoundaryModel(
        stored_hidden.astype(np.float32),
        hidden_bias.astype(np.float32),
        output[:, 0].astype(np.float32),
        float(np.float32(output_bias[0])),
    )


def separate_examples(
    examples: Sequence[LabelledEncoding],
) -> tuple[list[LabelledEncoding], list[LabelledEncoding]]:
    """Return the examples to train on, and those to measure on: both forms of a text together."""
    train = [example for example in examples if example.labelled.number % HELD_OUT]
    test = [example for example in examples if not example.labelled.number % HELD_OUT]
    return train, test


def measure_auc(
    examples: Sequence[LabelledEncoding], model: BoundaryModel
) -> dict[str, dict[str, float]]:
    """Return the area under the ROC curve by form and source; "all" is that of all sources."""
    scores: dict[tuple[str, str], list[tuple[Floats, Flags]]] = {}
    for example in examples:
        labelled, known = example.labelled, example.labelled.known
        predicted = boundary_probabilities(example.encoded.cut(model.dimension), model)[1:-1]
        pair = (predicted[known], labelled.labels[known])
        for source in ("all", labelled.source):
            scores.setdefault((labelled.form, source), []).append(pair)
    areas: dict[str, dict[str, float]] = {}
    for (form, source), pairs in sorted(scores.items()):
        areas.setdefault(form, {})[source] = _area(pairs)
    return areas


def _area(pairs: Sequence[tuple[Floats, Flags]]) -> float:
    """Return the area for predictions and labels, which must be of both kinds; else NaN."""
    predictions, labels = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
    if labels.all() or not labels.any():
        return float("nan")
    return float(roc_auc_score(labels, predictions))
