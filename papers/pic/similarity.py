"""PiC's phrase similarity (PS): do two phrases mean the same?

Told by the cosine of their vectors, and by a classifier on them (section 5.1). A phrase is read by
itself, or in its sentence: there its vector is the mean of its tokens'. Pairs whose sentences do
not contain them are left out.

- `cosine`: the phrases mean the same from a threshold on, the one of the training pairs' cosines
  that is right most often on these.
- `classifier`: see `papers.pic.classifier`. The paper trains the encoder along with it
  ("the backbones are allowed to be finetuned"); ours is not changed, which is less.

Trained on ``ps_train`` and stopped by ``ps_dev`` if they are in the data folder. If they are not,
by cross-validation: the test pairs fall into five parts by a hash of their first phrase (so that
what a phrase means elsewhere is not given away), each is tested by the threshold of the other four,
and by a classifier trained on three of them and stopped by the fourth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality import bootstrap
from benchmarks.quality.correlation import auc
from benchmarks.quality.systems import Scorer, SpanEncoder, System, TextEncoder
from hybrid_search.text.spans import Index
from hybrid_search.text.types import Floats
from papers.pic import classifier, files
from papers.pic.files import Pair

FOLDS = 5
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Split:
    """Numbers of the pairs to train on, to stop by, and to test.

    `dev` may be a part of `train`; a classifier that it stops is then trained on the rest.
    """

    train: Index
    dev: Index
    test: Index


def measure(system: System, data: Path, classifiers: bool = True) -> dict[str, Any]:
    """Return AUC, accuracy and its 95% interval of each set-up that `system` supports.

    Also the file they are of, and how thresholds were chosen. `classifiers` need scikit-learn.
    Raises SystemExit without it, or without a file.
    """
    path = files.find_test_file(data, files.PS)
    pairs, splits, tuning = _split(data, path)
    pair_count = len(files.read_pairs(path))
    labels = np.array([pair.label for pair in pairs], dtype=bool)
    tested = np.concatenate([split.test for split in splits])
    result: dict[str, Any] = {
        "file": path.name,
        "rows": len(tested),
        "left out": pair_count - len(tested),
        "tuned on": tuning,
        "setups": {},
    }
    if isinstance(system, Scorer):
        scores = system.scores([pair.phrase1 for pair in pairs], [pair.phrase2 for pair in pairs])
        result["setups"]["phrase"] = {"score": score_by_threshold(scores, labels, splits)}
    for name, first, second in vectors(system, pairs):
        result["setups"][name] = {
            "cosine": score_by_threshold((first * second).sum(axis=1), labels, splits)
        }
        if classifiers:
            result["setups"][name]["classifier"] = score_by_classifier(
                np.concatenate([first, second], axis=1), labels, splits
            )
    return result


def _split(data: Path, path: Path) -> tuple[list[Pair], list[Split], str]:
    """Return all pairs, how they are split, and that in words."""
    tested = _drop_incomplete(files.read_pairs(path))
    train, dev = (files.find_part(data, files.PS, name) for name in ("train", "dev"))
    if not train or not dev:
        return (
            tested,
            list(split_folds(tested)),
            f"{FOLDS}-fold cross-validation by a hash of the first phrase",
        )
    parts = [
        _drop_incomplete(files.read_pairs(train)),
        _drop_incomplete(files.read_pairs(dev)),
        tested,
    ]
    edges = np.cumsum([0, *map(len, parts)])
    numbers = [np.arange(start, end) for start, end in pairwise(edges)]
    return [pair for part in parts for pair in part], [Split(*numbers)], f"{train.name}, {dev.name}"


def _drop_incomplete(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs whose sentences contain their phrases."""
    return [
        pair
        for pair in pairs
        if files.find_places(pair.phrase1, pair.sentence1)
        and files.find_places(pair.phrase2, pair.sentence2)
    ]


def split_folds(pairs: Sequence[Pair]) -> Iterator[Split]:
    """Yield `FOLDS` ways to split `pairs`: one part tested, all others trained on.

    The next part is dev; empty parts are skipped.

    Raises:
        SystemExit: For fewer than three parts.
    """
    digests = [hashlib.sha256(pair.phrase1.casefold().encode()).digest() for pair in pairs]
    parts = np.array([int.from_bytes(digest[:8], "big") % FOLDS for digest in digests])
    part_numbers = np.unique(parts)
    if len(part_numbers) < 3:
        raise SystemExit(
            f"{len(pairs)} pairs fall into {len(part_numbers)} parts by their first phrase,"
            " and cross-validation takes 3: give more pairs"
        )
    for tested, dev in zip(part_numbers, np.roll(part_numbers, -1), strict=True):
        yield Split(
            np.flatnonzero(parts != tested),
            np.flatnonzero(parts == dev),
            np.flatnonzero(parts == tested),
        )


def vectors(system: System, pairs: Sequence[Pair]) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield set-ups by name, with the unit vectors of all first and of all second phrases.

    float32 ``[pairs, dimension]``.
    """
    if isinstance(system, TextEncoder):
        yield (
            "phrase",
            system.encode_texts([pair.phrase1 for pair in pairs]),
            system.encode_texts([pair.phrase2 for pair in pairs]),
        )
    if isinstance(system, SpanEncoder):
        first = _vectors_in_sentences(system, [(pair.phrase1, pair.sentence1) for pair in pairs])
        yield (
            "phrase in context",
            first,
            _vectors_in_sentences(system, [(pair.phrase2, pair.sentence2) for pair in pairs]),
        )


def _vectors_in_sentences(system: SpanEncoder, phrases: Sequence[tuple[str, str]]) -> Floats:
    """Return the vector of each phrase where its sentence first contains it."""
    places = [[files.find_places(phrase, sentence)[0]] for phrase, sentence in phrases]
    return np.concatenate(list(system.encode_spans([sentence for _, sentence in phrases], places)))


def score_by_threshold(scores: Floats, labels: Flags, splits: Sequence[Split]) -> dict[str, Any]:
    """Return the AUC over all tested pairs, the thresholds, and the accuracy by them."""
    thresholds = [threshold(scores[split.train], labels[split.train]) for split in splits]
    right = [
        (scores[split.test] >= least) == labels[split.test]
        for split, least in zip(splits, thresholds, strict=True)
    ]
    tested = np.concatenate([split.test for split in splits])
    return {
        "AUC": round(auc(scores[tested], labels[tested].tolist()), 4),
        "thresholds": [round(cutoff, 4) for cutoff in thresholds],
        "accuracy": bootstrap.summary(np.concatenate(right).astype(float).tolist()),
    }


def threshold(scores: Floats, labels: Flags) -> float:
    """Return the score from which on "the same" is right most often, the lowest if several."""
    values = np.unique(scores)
    same, different = np.sort(scores[labels]), np.sort(scores[~labels])
    right = len(same) - np.searchsorted(same, values) + np.searchsorted(different, values)
    return float(values[np.argmax(right)])


def score_by_classifier(features: Floats, labels: Flags, splits: Sequence[Split]) -> dict[str, Any]:
    """Return the accuracy of a classifier for each split, and the epochs of each."""
    fitted = [
        classifier.fit(features, labels, np.setdiff1d(split.train, split.dev), split.dev)
        for split in splits
    ]
    right = [
        fitted_classifier.predict(features[split.test]) == labels[split.test]
        for fitted_classifier, split in zip(fitted, splits, strict=True)
    ]
    return {
        "epochs": [fitted_classifier.epochs for fitted_classifier in fitted],
        "accuracy": bootstrap.summary(np.concatenate(right).astype(float).tolist()),
    }
