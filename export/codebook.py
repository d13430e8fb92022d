"""Fit a model's codebook: ``python -m export.codebook --model FOLDER --data DATA``.

``codebook.npz`` is written into the model folder, its digest into ``encoder.json``, and a section
into the model card. The centroids are those of spherical k-means over the vectors of words in
calls that may be trained on. The encoder runs on the CPU, in int8 where the model allows it, as it
ships. The same seed gives the same file on the same machine. It needs no torch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.calibrate import record_digest
from export import card
from export.boundaries import corpora
from export.boundaries.encoded import BATCH, Progress
from export.boundaries.gaps import TRANSLATED
from export.fit_command import make_parser, report
from export.npz import write_arrays
from hybrid_search import encoder
from hybrid_search.encoder import Encoder
from hybrid_search.encoder.model_folder import CODEBOOK
from hybrid_search.errors import HybridSearchError
from hybrid_search.text import passages, spans
from hybrid_search.text.types import Codes, Floats
from hybrid_search.text.words import words

SECTION = "Codebook"

CENTROIDS = 4096
WORDS = 120_000
"""Words that the centroids are fitted to: some thirty for each."""

ROUNDS = 8
"""Rounds of k-means: the eighth changed the mean cosine by less than .0005."""

ROWS_TOGETHER = 4096
"""Words whose products with all centroids are in memory at once: 67 MB."""

SOURCES: dict[str, Callable[[Path], list[str]]] = {
    "sgd": corpora.read_sgd_turns,
    "taskmaster4": partial(corpora.read_turns, name="calls_taskmaster4"),
    "multiwoz": partial(corpora.read_turns, name="calls_multiwoz"),
    "qmsum": partial(corpora.read_positives, name="qmsum"),
}
"""The sets whose turns are encoded, each as many words as the others."""

ABOUT = """`codebook.npz` has the {centroids:,} centroids that the stored codes of words refer to.
Made by `python -m export.codebook`, seed {seed}, by spherical k-means over {words:,} words of
{sources}. The mean cosine of a word and its centroid is {cosine:.3f}; centroids explain
{energy:.0%} of the words' energy."""


def main() -> None:
    """Run the command."""
    options = _parse_options()
    try:
        full_encoder = encoder.load(options.model, "cpu")
    except HybridSearchError as error:
        raise SystemExit(str(error)) from error
    turns = read_turns(options.data, full_encoder.info.languages)
    vectors = encode_words(full_encoder, turns, options.seed, options.words, report)
    centroids = fit_centroids(vectors, options.centroids, options.seed, report)
    path = options.model / CODEBOOK
    write_arrays(path, {"centroids": centroids})
    record_digest(path)
    _, cosines = find_nearest(vectors, scale_rows(centroids.astype(np.float32)))
    mean, energy = float(cosines.mean()), float((cosines**2).mean())
    about = ABOUT.format(
        centroids=len(centroids),
        seed=options.seed,
        words=len(vectors),
        sources=", ".join(turns),
        cosine=mean,
        energy=energy,
    )
    card.replace_section(options.model, SECTION, about)
    print(about)


def read_turns(data: Path, languages: Collection[str]) -> dict[str, list[str]]:
    """Return the turns of `SOURCES` by name, and those in the other languages of a model."""
    turns = {name: read(data) for name, read in SOURCES.items()}
    translated = corpora.read_translated_turns(languages)
    return turns | {TRANSLATED: translated} if translated else turns


def encode_words(
    full_encoder: Encoder,
    turns_by_source: Mapping[str, Sequence[str]],
    seed: int,
    count: int,
    progress: Progress,
) -> Floats:
    """Return the unit vectors of words in turns, float32 ``[words, dimension]``.

    Args:
        full_encoder: The encoder, with vectors in full.
        turns_by_source: The turns of each source, of which each gives as many words.
        seed: Of the choice of turns.
        count: Number of words, about.
        progress: Is told how many words are encoded.
    """
    vectors: list[Floats] = []
    for name, of_source in turns_by_source.items():
        turns = sorted(set(of_source))
        corpora.make_random(seed, name).shuffle(turns)
        encoded = 0
        for block in _list_word_vectors(full_encoder, turns):
            vectors.append(block)
            encoded += len(block)
            if encoded >= count / len(turns_by_source):
                break
        progress(f"{encoded:,} words of {name} encoded")
    return np.concatenate(vectors)


def _list_word_vectors(full_encoder: Encoder, turns: Sequence[str]) -> Iterator[Floats]:
    """Yield the unit vectors of the words of some turns; words without a token are left out."""
    for start in range(0, len(turns), BATCH):
        batch = turns[start : start + BATCH]
        rows = []
        for turn, encoding in zip(batch, full_encoder.encode(batch), strict=True):
            bounds = words(turn)[: passages.WINDOW_WORDS]
            tokens = spans.token_bounds(encoding.offsets, bounds)
            sums = spans.running_sums(encoding.vectors)
            rows.append(sums[tokens[:, 1]] - sums[tokens[:, 0]])
        joined = np.concatenate(rows)
        yield scale_rows(joined[joined.any(axis=1)])


def fit_centroids(vectors: Floats, count: int, seed: int, progress: Progress) -> Codes:
    """Return `count` centroids of unit vectors, int8 ``[count, dimension]``, each in its own scale.

    Spherical k-means (Dhillon and Modha, 2001): a centroid is the sum of the vectors whose cosine
    with it is the largest. One without vectors becomes the vector that is farthest from its own.

    Raises:
        SystemExit: If there are fewer vectors than centroids.
    """
    if len(vectors) < count:
        raise SystemExit(f"{len(vectors):,} words are too few for {count:,} centroids")
    chosen = np.random.default_rng(seed).choice(len(vectors), count, replace=False)
    centroids = vectors[np.sort(chosen)]
    for number in range(ROUNDS):
        owners, cosines = find_nearest(vectors, centroids)
        centroids = scale_rows(_sum_by_owner(vectors, owners, count))
        empty = np.flatnonzero(np.bincount(owners, minlength=count) == 0)
        centroids[empty] = vectors[np.argsort(cosines, kind="stable")[: len(empty)]]
        progress(f"round {number + 1}: mean cosine {cosines.mean():.4f}, {len(empty)} empty")
    largest = np.abs(centroids).max(axis=1, keepdims=True)
    codes: Codes = np.rint(centroids * (127 / largest)).astype(np.int8)
    return codes


def find_nearest(vectors: Floats, centroids: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return the nearest centroid of each vector, and their cosine, each ``[vectors]``."""
    owners, cosines = np.zeros(len(vectors), np.intp), np.zeros(len(vectors), np.float32)
    for start in range(0, len(vectors), ROWS_TOGETHER):
        rows = slice(start, start + ROWS_TOGETHER)
        products = vectors[rows] @ centroids.T
        owners[rows] = products.argmax(axis=1)
        cosines[rows] = products.max(axis=1)
    return owners, cosines


def _sum_by_owner(vectors: Floats, owners: NDArray[np.intp], count: int) -> Floats:
    order = np.argsort(owners, kind="stable")
    present, starts = np.unique(owners[order], return_index=True)
    sums = np.zeros((count, vectors.shape[1]), np.float32)
    sums[present] = np.add.reduceat(vectors[order], starts)
    return sums


def scale_rows(vectors: Floats) -> Floats:
    """Return rows at length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Floats = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return units


def _parse_options() -> argparse.Namespace:
    parser = make_parser("export.codebook", __doc__)
    parser.add_argument("--words", type=int, default=WORDS, help="words to fit to, about")
    parser.add_argument("--centroids", type=int, default=CENTROIDS, help="how many are fitted")
    return parser.parse_args()


if __name__ == "__main__":
    main()
