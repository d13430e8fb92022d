"""Exact scores of every span of 1..`MAX_WORDS` words, without building any span vector.

The vector of a span is the mean of its tokens' vectors (SLICE). With P the running sum of ``H @ q``
and S that of ``H``, the cosine of a unit query q with the mean of tokens i..j is ``(P[j] - P[i]) /
|S[j] - S[i]|``: the mean's 1/(j-i) cancels. The norms do not depend on the query, so they are
stored, and a query costs one product and one subtraction per span.

A span consists of whole words and never crosses a turn. Spans are numbered word by word, and for
each word from the shortest span to the longest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hybrid_search.text.types import Bytes, Floats, Ints

MAX_WORDS = 20
"""The longest span in words (K). SLICE uses 20; on its task 10 to 35 are within .002."""

BLOCK_WORDS = 128
"""Number of words whose spans are measured together.

A passage has up to 80 words, or a little more than 128 if it is a piece of a long turn.
"""

GRAM_TOKENS = 1024
"""Number of tokens whose pairwise dot products are in memory at once: 8 MB in float64."""

SINGLE_THREAD_PRODUCTS = 4 * 65536
"""Number of multiplications up to which OpenBLAS uses one thread.

It is ``GEMM_MULTITHREAD_THRESHOLD`` times ``SMP_THRESHOLD_MIN`` of OpenBLAS.
"""

Index = NDArray[np.intp]


def counts(words: int, core: int, breaks: Sequence[int] = ()) -> Bytes:
    """Return the number of spans that start at each word of a part, uint8 ``[words]``.

    Spans end within the part, and none starts after its core. No span contains both a word of
    `breaks` and the word before it.
    """
    ends = np.array([*breaks, words])
    numbers = np.arange(words)
    remaining = np.minimum(ends[np.searchsorted(ends, numbers, side="right")] - numbers, MAX_WORDS)
    remaining[core:] = 0
    return remaining.astype(np.uint8)


def ends_part(counts: Bytes) -> NDArray[np.bool_]:
    """Return for each word whether no span goes on behind it, bool ``[words]``.

    It is the last word of a turn, which starts one span, or of a piece that continues in the next
    one, whose last words start none.
    """
    following = np.append(counts[1:], 1)
    return np.asarray((counts == 1) | ((counts == 0) & (following > 0)))


def bounds(counts: Bytes) -> tuple[Index, Index]:
    """Return the first and the last word of every span, each intp ``[spans]``."""
    return np.repeat(np.arange(len(counts)), counts), last_words(counts)


def last_words(counts: Bytes) -> Index:
    """Return the last word of every span, intp ``[spans]``."""
    first_spans = np.cumsum(counts, dtype=np.intp) - counts
    shifts = np.arange(len(counts)) - first_spans  # from a word's first span to the word itself
    words = np.repeat(shifts, counts)
    words += np.arange(len(words))
    return words


def token_bounds(offsets: Ints, words: Ints) -> Ints:
    """Return each word's first token and the token after its last, int32 ``[words, 2]``.

    A token belongs to the words that its characters overlap. A word without a token (the tokenizer
    dropped its characters) gets an empty range at the place where the token would be.
    """
    first = np.searchsorted(offsets[:, 1], words[:, 0], side="right")
    after = np.searchsorted(offsets[:, 0], words[:, 1], side="left")
    return np.stack([first, np.maximum(first, after)], axis=1).astype(np.int32)


def running_sums(vectors: Floats) -> Floats:
    """Return S, float32 ``[tokens + 1, dimension]``: row i is the sum of the first i vectors.

    `vectors` is float32 ``[tokens, dimension]``.
    """
    sums = np.zeros((len(vectors) + 1, vectors.shape[1]), dtype=np.float32)
    # Row by row: np.cumsum works down the columns, which takes more than twice as long.
    for row, vector in enumerate(vectors):
        np.add(sums[row], vector, out=sums[row + 1])
    return sums


def multiply(vectors: Floats, weights: Floats) -> Floats:
    """Return ``vectors @ weights``, in batches of rows small enough for BLAS to use one thread.

    While an encoder uses all cores, two threads waiting for each other take 30 times as long.
    """
    product = np.empty((len(vectors), weights.shape[1]), dtype=np.float32)
    step = max(1, SINGLE_THREAD_PRODUCTS // weights.size)
    for start in range(0, len(vectors), step):
        np.dot(vectors[start : start + step], weights, out=product[start : start + step])
    return product


def norms(vectors: Floats, tokens: Ints, counts: Bytes) -> Floats:
    """Return the length of the sum of each span's token vectors, float32 ``[spans]``.

    `vectors` is float32 ``[tokens, dimension]`` and `tokens` int32 ``[words, 2]`` as returned by
    `token_bounds`. Words are processed in blocks of `BLOCK_WORDS`, together with the words in which
    their spans end, so memory grows with the tokens, not with the spans.
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
    """Return the `norms` of the spans that start at the first ``len(counts)`` words.

    The squared length is the sum of all dot products between the span's tokens, a square block on
    the diagonal of the Gram matrix. With T the matrix's running sums along both axes (a summed-area
    table), it is ``T[j, j] + T[i, i] - 2 T[i, j]`` for tokens i up to j. T is float64, because its
    entries are up to 10,000 times as large as the difference.
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
    cross_sums = table.ravel()[start * size + end]  # table[start, end] in a third of the time
    squares = diagonal[start] + diagonal[end] - 2.0 * cross_sums
    lengths: Floats = np.sqrt(np.maximum(squares, 0.0)).astype(np.float32)
    return lengths


def _gram(vectors: Floats) -> Floats:
    """Return ``vectors @ vectors.T`` as a sum of products that BLAS each computes in one thread.

    While an encoder uses all cores, a product with two threads waits for the slower one and took 20
    times as long.
    """
    gram = np.zeros((len(vectors), len(vectors)), dtype=np.float32)
    step = max(8, SINGLE_THREAD_PRODUCTS // max(1, gram.size))
    for first in range(0, vectors.shape[1], step):
        part = vectors[:, first : first + step]
        gram += part @ part.T
    return gram


def _merge_tokens(vectors: Floats, tokens: Ints) -> tuple[Floats, Ints]:
    """Merge tokens without a word boundary between them; a base64 word has thousands."""
    edges, positions = np.unique(tokens, return_inverse=True)
    return np.add.reduceat(vectors, edges[:-1]), positions.reshape(tokens.shape).astype(np.int32)


def cosines(
    products: Floats, rows: Index, counts: Bytes, inverse_norms: NDArray[np.floating]
) -> Floats:
    """Return the cosine of the query with every span, float32 ``[spans]``.

    `products`, float ``[rows]``, are those of a unit query and the vector of each row; `rows` are
    those of the words. The cosine of a span without tokens is 0.
    """
    sums = span_sums(products, rows, counts)
    sums *= inverse_norms
    clipped: Floats = np.clip(sums, -1.0, 1.0, out=sums).astype(np.float32)
    return clipped


def span_sums(values: NDArray[np.floating], rows: Index, counts: Bytes) -> NDArray[np.float64]:
    """Return the sum of each span's rows, float64 ``[spans]``.

    `values` are float ``[rows]``, and `rows` the row of each word, intp ``[words]``.
    """
    running = np.zeros(len(values) + 1)
    np.cumsum(values, out=running[1:])
    sums = running[rows + 1][last_words(counts)]
    sums -= np.repeat(running[rows], counts)
    return sums


def find_highest(cosines: Sequence[Floats]) -> Floats:
    """Return the highest cosine of each passage, float32 ``[passages]``; -1 without spans."""
    counts = np.array([len(passage_cosines) for passage_cosines in cosines], dtype=np.intp)
    with_end = np.concatenate([*cosines, np.full(1, -1.0, np.float32)])
    highest: Floats = np.maximum.reduceat(with_end, np.cumsum(counts) - counts)
    highest[counts == 0] = -1.0
    return highest


def inverse(lengths: Floats) -> Floats:
    """Return 1 / length, or 0 where the length is 0, as for a span without tokens."""
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def scale_to_unit(vector: Floats) -> Floats:
    """Scale a vector to length 1; a zero vector stays unchanged."""
    return vector / np.float32(max(float(np.linalg.norm(vector)), 1e-12))


def best(
    scores: Floats, starts: NDArray[np.integer], ends: NDArray[np.integer], k: int
) -> Iterator[int]:
    """Yield the numbers of the `k` best non-overlapping spans, best first.

    Ties go to the first span, then to the shortest. Span i is from ``starts[i]`` up to but not
    including ``ends[i]``, in words or in characters.
    """
    free_scores = scores.astype(np.float64)
    for _ in range(min(k, len(scores))):
        number = int(free_scores.argmax())
        if free_scores[number] == -np.inf:
            return
        yield number
        free_scores[(ends > starts[number]) & (starts < ends[number])] = -np.inf
