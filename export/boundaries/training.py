"""Train the span prior of a model in all its sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from export.boundaries.encoded import Progress, encode_texts
from export.boundaries.examples import encode_sets, read_marked_sets
from export.boundaries.gaps import WRITTEN, read_labelled_texts
from export.boundaries.network import (
    LabelledEncoding,
    fit_boundaries,
    measure_auc,
    separate_examples,
)
from export.boundaries.weights import (
    EncodedExample,
    SpanTable,
    Weights,
    fit_weights,
    measure_word_f1,
    tabulate_spans,
)
from hybrid_search.encoder import Encoder
from hybrid_search.text.boundaries import BoundaryModel
from hybrid_search.text.span_prior import SpanPrior

UNMARKED_SHARES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares to choose from, for a gap without a mark in a text that has marks elsewhere."""


STRENGTH = 0.7
"""How strong the prior is, beside one that is fitted to marks alone.

The score of a text has the prior of its best span in it, and texts rank worse with the full one.
"""


@dataclass(frozen=True, slots=True)
class Quality:
    """How well the prior of one dimension fits.

    Attributes:
        auc: Area under the ROC curve of the boundary model, by form and source, on texts that it
            was not trained on.
        cosine_f1: Mean word F1 of the best spans by cosine, by set.
        prior_f1: The same by cosine plus prior. The weights were fitted on these sets.
    """

    auc: Mapping[str, Mapping[str, float]]
    cosine_f1: Mapping[str, float]
    prior_f1: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class TrainedPrior:
    """What was trained.

    Attributes:
        priors: The prior of each dimension, the usual one first.
        qualities: How well each fits.
        texts: The number of texts with labelled gaps, by source.
        examples: The number of marked examples, by set.
    """

    priors: Mapping[int, SpanPrior]
    qualities: Mapping[int, Quality]
    texts: Mapping[str, int]
    examples: Mapping[str, int]


def train_prior(
    encoder: Encoder,
    data: Path,
    seed: int,
    progress: Progress = lambda _: None,
    most_texts: int | None = None,
) -> TrainedPrior:
    """Return the prior of each size of an encoder, which has vectors in full.

    Args:
        encoder: The encoder.
        data: The folder of data sets.
        seed: Of all draws, and of the network.
        progress: Is told what was done.
        most_texts: How many texts with labelled gaps are used at most; None for all.
    """
    labelled_texts = read_labelled_texts(data, seed, encoder.info.languages, most_texts)
    encodings = encode_texts(encoder, [labelled.text for labelled in labelled_texts], progress)
    gap_examples = [
        LabelledEncoding(labelled, encoded)
        for labelled, encoded in zip(labelled_texts, encodings, strict=True)
    ]
    sets = encode_sets(encoder, read_marked_sets(encoder, data, seed, progress), progress)
    priors, qualities = dict[int, SpanPrior](), dict[int, Quality]()
    unmarked: tuple[float, ...] = UNMARKED_SHARES
    for dimension in _list_sizes(encoder):
        prior, qualities[dimension] = _fit_size(gap_examples, sets, dimension, seed, unmarked)
        priors[dimension] = prior
        unmarked = (prior.boundaries.unmarked,)  # chosen once, for the usual size
        progress(f"{dimension} numbers: {_describe(priors[dimension])}")
    written = (labelled.source for labelled in labelled_texts if labelled.form == WRITTEN)
    counts = {name: len(items) for name, items in sets.items()}
    return TrainedPrior(priors, qualities, dict(sorted(Counter(written).items())), counts)


def _list_sizes(encoder: Encoder) -> list[int]:
    info = encoder.info
    return list(dict.fromkeys((*info.sizes, info.dimension)))


def _fit_size(
    gap_examples: Sequence[LabelledEncoding],
    sets: Mapping[str, Sequence[EncodedExample]],
    dimension: int,
    seed: int,
    unmarked: Sequence[float],
) -> tuple[SpanPrior, Quality]:
    train_examples, test_examples = separate_examples(gap_examples)
    network = fit_boundaries(train_examples, dimension, seed)
    choices = (_weigh(sets, replace(network, unmarked=share)) for share in unmarked)
    boundaries, tables, (ends, inside, length), _ = max(choices, key=lambda choice: choice[-1])
    weights = (STRENGTH * ends, STRENGTH * inside, STRENGTH * length)
    quality = Quality(
        measure_auc(test_examples, boundaries),
        {name: measure_word_f1(items) for name, items in tables.items()},
        {name: measure_word_f1(items, weights) for name, items in tables.items()},
    )
    return SpanPrior(boundaries, *weights), quality


def _weigh(
    sets: Mapping[str, Sequence[EncodedExample]], boundaries: BoundaryModel
) -> tuple[BoundaryModel, dict[str, list[SpanTable]], Weights, float]:
    """Return the boundary model, the sets' spans by it, their weights and how well they fit."""
    tables = {
        name: [tabulate_spans(item, boundaries) for item in items] for name, items in sets.items()
    }
    return boundaries, tables, *fit_weights(tables)


def _describe(prior: SpanPrior) -> str:
    return f"ends {prior.ends:.3f}, inside {prior.inside:.3f}, length {prior.length:.3f}"
