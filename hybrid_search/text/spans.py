"""The mathematics of spans: every span of 1..`MAX_WORDS` words scored exactly, without one span
vector being built or stored.

The vector of a span is the mean of its tokens' vectors (SLICE). With P the running sum of ``H @ q``
and S that of ``H``, the cosine of a unit query q with the mean of tokens i..j is ``(P[j] - P[i]) /
|S[j] - S[i]|``: the mean's 1/(j-i) cancels. The norms do not depend on the query, so they are kept;
what is left for a query is one product and one subtraction a span.

Spans are whole words and never cross a turn. They are numbered word by word, for a word from the
shortest to the longest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid_search.text.types import Bytes, Floats, Ints

MAX_WORDS = 20
"""The longest span in words (K). SLICE uses 20; 10 to 35 were within .002 of each other on its
task.
"""

BLOCK_WORDS = 128
"""Words whose spans are measured together: a passage has 80, or a little more than 128 if it is a
piece of a long turn.
"""

GRAM_TOKENS = 1024
"""Tokens whose dot products with each other are kept at once: 8 MB in float64."""

SINGLE_THREAD_PRODUCTS = 4 * 65536
"""Multiplications up to which OpenBLAS takes one thread (``GEMM_MULTITHREAD_THRESHOLD`` times
``SMP_THRESHOLD_MIN``).
"""

Index = NDArray[np.intp]


def counts(words: int, core: int) -> Bytes:
    """How many spans start at each word of a part, uint8 ``[words]``: they end in the part, and
    none starts behind its core.
    """
    remaining = np.minimum(words - np.arange(words), MAX_WORDS)
    remaining[core:] = 0
    return remaining.astype(np.uint8)


def bounds(counts: Bytes) -> tuple[Index, Index]:
    """First and last word of every span, each intp ``[spans]``."""
    words, spans = np.arange(len(counts)), np.arange(counts.sum(dtype=np.intp))
    shifts = words - (
        np.cumsum(counts, dtype=np.intp) - counts
    )  # from a span's number to its last word, if it were the first of its word
    return np.repeat(words, counts), spans + np.repeat(shifts, counts)


def token_bounds(offsets: Ints, words: Ints) -> Ints:
    """First token and the token after the last of each word, int32 ``[words, 2]``, by overlap of
    characters.

    A word without a token of its own (the tokenizer dropped its characters) gets an empty range
    where it would be.
    """
    first = np.searchsorted(offsets[:, 1], words[:, 0], side="right")
    after = np.searchsorted(offsets[:, 0], words[:, 1], side="left")
    return np.stack([first, np.maximum(first, after)], axis=1).astype(np.int32)


def running_sums(vectors: Floats) -> Floats:
    """S: row i is the sum of the first i token vectors. float32 ``[tokens + 1, dimension]`` of
    float32 ``[tokens, dimension]``.
    """
    sums = np.zeros((len(vectors) + 1, vectors.shape[1]), dtype=np.float32)
    for row, vector in enumerate(
        vectors
    ):  # np.cumsum goes down the columns, which takes more than twice as long
        np.add(sums[row], vector, out=sums[row + 1])
    return sums


def norms(vectors: Floats, tokens: Ints, counts: Bytes) -> Floats:
    """The length of the sum of each span's token vectors, float32 ``[spans]``.

    `vectors` float32 ``[tokens, dimension]``; `tokens` int32 ``[words, 2]`` as from `token_bounds`.
    The words are taken some at a time, with those that their spans end in, so that the memory
    needed is that of the tokens and not that of the spans.
    """
    block_norms = [np.zeros(0, dtype=np.float32)]
    for start in range(0, len(counts), BLOCK_WORDS):
        block_tokens = tokens[start : start + BLOCK_WORDS + MAX_WORDS - 1]
        first, after = int(block_tokens.min()), int(block_tokens.max())
        block_norms.append(
            _norms(vectors[first:after], block_tokens - first, counts[start : start + BLOCK_WORDS])
        )
    return np.concatenate(block_norms)


def _norms(vectors: Floats, tokens: Ints, counts: Bytes) -> Floats:
    """Of spans that start at the first ``len(counts)`` of the words.

    The square of the length is the sum of the dot products of the span's tokens with each other: a
    square on the diagonal of the Gram matrix, and with the matrix's running sums T both ways (a
    summed-area table) it is ``T[j, j] + T[i, i] - 2 T[i, j]`` for tokens i up to j. In float64, for
    the sums are up to 10,000 times as large as what is left.
    """
    if len(vectors) > GRAM_TOKENS:
        vectors, tokens = _merge_tokens(vectors, tokens)
    size = len(vectors) + 1
    table = np.zeros((size, size))
    table[1:, 1:] = _gram(vectors)
    for axis in (0, 1):
        np.cumsum(table, axis=axis, out=table)
    first, last = bounds(counts)
    start, end = tokens[first, 0].astype(np.intp), tokens[last, 1]
    diagonal = table.diagonal()
    squares = (
        diagonal[start] + diagonal[end] - 2.0 * table.ravel()[start * size + end]
    )  # as table[start, end], in a third of the time
    lengths: Floats = np.sqrt(np.maximum(squares, 0.0)).astype(np.float32)
    return lengths


def _gram(vectors: Floats) -> Floats:
    """``vectors @ vectors.T``, some of their numbers at a time: products so small that BLAS
    computes each in one thread.

    Where the encoder has all cores, a product of two threads waits for the slower one: it took 20
    times as long.
    """
    gram = np.zeros((len(vectors), len(vectors)), dtype=np.float32)
    step = max(8, SINGLE_THREAD_PRODUCTS // max(1, gram.size))
    for first in range(0, vectors.shape[1], step):
        part = vectors[:, first : first + step]
        gram += part @ part.T
    return gram


def _merge_tokens(vectors: Floats, tokens: Ints) -> tuple[Floats, Ints]:
    """Tokens between which no word starts or ends, as one each: a word of base64 has thousands."""
    edges, positions = np.unique(tokens, return_inverse=True)
    return np.add.reduceat(vectors, edges[:-1]), positions.reshape(tokens.shape).astype(np.int32)


def cosines(
    products: Floats, tokens: Ints, counts: Bytes, inverse_norms: NDArray[np.floating]
) -> Floats:
    """The cosine of the query with every span, float32 ``[spans]``.

    `products` float ``[tokens]`` is ``H @ q`` for a unit query. A span without tokens has cosine 0.
    """
    running = np.zeros(len(products) + 1)
    np.cumsum(products, out=running[1:])
    _, last = bounds(counts)
    differences = running[tokens[:, 1]][last]
    differences -= np.repeat(
        running[tokens[:, 0]], counts
    )  # of a word that is the first of so many spans
    differences *= inverse_norms
    clipped: Floats = np.clip(differences, -1.0, 1.0, out=differences).astype(np.float32)
    return clipped


def inverse(lengths: Floats) -> Floats:
    """1 / length, and 0 where the length is 0: a span without tokens is like nothing."""
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def best(
    scores: Floats, starts: NDArray[np.integer], ends: NDArray[np.integer], k: int
) -> list[int]:
    """The numbers of the `k` best spans that do not overlap, best first; of equal ones the first,
    then the shortest.

    Span i reaches from ``starts[i]`` up to, not including, ``ends[i]``: words, or characters.
    """
    selected: list[int] = []
    free = np.ones(len(scores), dtype=bool)
    while len(selected) < k and free.any():
        number = int(np.argmax(np.where(free, scores, -np.inf)))
        selected.append(number)
        free &= (ends <= starts[number]) | (starts >= ends[number])
    return selected
