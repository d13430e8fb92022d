"""The mathematics of spans: every span of 1..`MAX_WORDS` words scored exactly, without one span vector being built or stored.

The vector of a span is the mean of its tokens' vectors (SLICE). With P the running sum of ``H @ q`` and S that of ``H``, the cosine of a
unit query q with the mean of tokens i..j is ``(P[j] - P[i]) / |S[j] - S[i]|``: the mean's 1/(j-i) cancels. The norms do not depend on the
query, so they are kept; what is left for a query is one product and one subtraction a span.

Spans are whole words and never cross a turn. They are numbered word by word, for a word from the shortest to the longest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid_search.types import Bytes, Floats, Ints

MAX_WORDS = 20
"""The longest span in words (K). SLICE uses 20; 10 to 35 were within .002 of each other on its task."""

Index = NDArray[np.intp]


def counts(words: int, core: int) -> Bytes:
    """How many spans start at each word of a part, uint8 ``[words]``: they end in the part, and none starts behind its core."""
    remaining = np.minimum(words - np.arange(words), MAX_WORDS)
    remaining[core:] = 0
    return remaining.astype(np.uint8)


def bounds(counts: Bytes) -> tuple[Index, Index]:
    """First and last word of every span, each intp ``[spans]``."""
    words, spans = np.arange(len(counts)), np.arange(counts.sum(dtype=np.intp))
    shifts = words - (np.cumsum(counts, dtype=np.intp) - counts)  # from a span's number to its last word, if it were the first of its word
    return np.repeat(words, counts), spans + np.repeat(shifts, counts)


def token_bounds(offsets: Ints, words: Ints) -> Ints:
    """First token and the token after the last of each word, int32 ``[words, 2]``, by overlap of characters.

    A word without a token of its own (the tokenizer dropped its characters) gets an empty range where it would be.
    """
    first = np.searchsorted(offsets[:, 1], words[:, 0], side="right")
    after = np.searchsorted(offsets[:, 0], words[:, 1], side="left")
    return np.stack([first, np.maximum(first, after)], axis=1).astype(np.int32)


def running_sums(vectors: Floats) -> Floats:
    """S: row i is the sum of the first i token vectors. float32 ``[tokens + 1, dimension]`` of float32 ``[tokens, dimension]``."""
    sums = np.zeros((len(vectors) + 1, vectors.shape[1]), dtype=np.float32)
    for row, vector in enumerate(vectors):  # np.cumsum goes down the columns, which takes more than twice as long
        np.add(sums[row], vector, out=sums[row + 1])
    return sums


def norms(sums: Floats, tokens: Ints, counts: Bytes) -> Floats:
    """The length of the sum of each span's token vectors, float32 ``[spans]``.

    `sums` as from `running_sums`; `tokens` int32 ``[words, 2]`` as from `token_bounds`. One pass for each span length, so that the
    memory needed is that of the tokens and not that of the spans.
    """
    starts = np.cumsum(counts, dtype=np.intp) - counts
    lengths = np.empty(int(counts.sum()), dtype=np.float32)
    for length in range(1, int(counts.max(initial=0)) + 1):
        word = np.flatnonzero(counts >= length)
        difference = sums[tokens[word + length - 1, 1]] - sums[tokens[word, 0]]
        lengths[starts[word] + length - 1] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    return lengths


def cosines(products: Floats, tokens: Ints, counts: Bytes, inverse_norms: NDArray[np.floating]) -> Floats:
    """The cosine of the query with every span, float32 ``[spans]``.

    `products` float ``[tokens]`` is ``H @ q`` for a unit query. A span without tokens has cosine 0.
    """
    running = np.zeros(len(products) + 1)
    np.cumsum(products, out=running[1:])
    _, last = bounds(counts)
    scored = running[tokens[:, 1]][last]
    scored -= np.repeat(running[tokens[:, 0]], counts)  # of a word that is the first of so many spans
    scored *= inverse_norms
    clipped: Floats = np.clip(scored, -1.0, 1.0, out=scored).astype(np.float32)
    return clipped


def inverse(lengths: Floats) -> Floats:
    """1 / length, and 0 where the length is 0: a span without tokens is like nothing."""
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def best(scores: Floats, starts: NDArray[np.integer], ends: NDArray[np.integer], k: int) -> list[int]:
    """The numbers of the `k` best spans that do not overlap, best first; of equal ones the first, then the shortest.

    Span i reaches from ``starts[i]`` up to, not including, ``ends[i]``: words, or characters.
    """
    chosen: list[int] = []
    free = np.ones(len(scores), dtype=bool)
    while len(chosen) < k and free.any():
        number = int(np.argmax(np.where(free, scores, -np.inf)))
        chosen.append(number)
        free &= (ends <= starts[number]) | (starts >= ends[number])
    return chosen
