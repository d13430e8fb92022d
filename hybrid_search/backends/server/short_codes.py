"""Short codes of a passage on a server: from them its best span is estimated.

The word codes of a passage take some 33 KB of an answer, in base64, and its short codes 7. They
have each word's vector in two bits a number and its length, the inverse length of every span, and
the probabilities of clause boundaries. So cosines and priors of all spans are computed as in the
exact step (`text.spans`, `text.span_prior`), and differ by the rounding of vectors alone. An error
can only leave a passage out, and never changes a score.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_search.backends.server import two_bit_codes
from hybrid_search.text import spans, word_codes
from hybrid_search.text.span_filter import SpanFilter, find_words_of
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Bytes, Floats, WordCodes
from hybrid_search.text.word_vectors import inverse_norms

STEPS = 32
"""Steps of a rounded length in an octave: it is off by at most 1.1%."""

MIDDLE = 128
"""The code of the length 1; 0 is that of no length."""

NO_SCORE = np.float32(-2.0)
"""The score of a span that does not count: less than that of any other."""

_HEADER = struct.Struct("<4sHHI?")
_MAGIC = b"HSS3"


@dataclass(frozen=True, slots=True, eq=False)
class ShortCodes:
    """The short codes of one passage.

    Attributes:
        codes: uint8 ``[words, bytes]``: the directions of the words' vectors, as `two_bit_codes`
            has them.
        lengths: uint8 ``[words]``: the rounded lengths of the words' vectors, in units of the
            product of a vector and what its codes stand for.
        counts: uint8 ``[words]``: how many spans begin at each word.
        inverse_norms: uint8 ``[spans]``: the rounded inverse lengths of the spans' vectors.
        boundaries: uint8 ``[words]``: those of the word codes, None if these have none.
        turns: Those of the word codes, which are not stored with the short codes.
    """

    codes: Bytes
    lengths: Bytes
    counts: Bytes
    inverse_norms: Bytes
    boundaries: Bytes | None
    turns: Sequence[tuple[int, str | None]] = ()

    def fit(self, query: Floats, prior: SpanPrior | None = None) -> bool:
        """Return whether the vectors are as long as `query`, and `prior` has its boundaries."""
        has_dimension = self.codes.shape[1] == two_bit_codes.count_bytes(len(query))
        return bool(has_dimension) and (prior is None or self.boundaries is not None)


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """The estimated best of the spans of some passages, each float32 ``[passages]``.

    `cosines` are those of the nearest spans, -1 without a span. `scores` are the best sums of
    cosine and prior, and the same as the cosines without a prior. `doubts` are how much less the
    scores are without the spans of which it is not sure that they count.
    """

    cosines: Floats
    scores: Floats
    doubts: Floats


def shorten(tokens: WordCodes) -> ShortCodes:
    """Return the short codes of a passage; its word codes must be sound."""
    vectors = word_codes.vectors(tokens)[tokens.rows]
    lengths: Floats = np.linalg.norm(vectors, axis=1)
    unit_vectors = vectors * spans.inverse(lengths)[:, None]
    codes = two_bit_codes.encode(unit_vectors)
    own_products = two_bit_codes.multiply_own(codes, unit_vectors)
    return ShortCodes(
        codes,
        _round_lengths(lengths * spans.inverse(own_products)),
        tokens.counts,
        _round_lengths(inverse_norms(tokens)),
        tokens.boundaries,
    )


def to_bytes(short_codes: ShortCodes) -> bytes:
    """Return short codes as one binary field.

    A header with magic, words, bytes a word, spans, and whether there are boundaries, comes first;
    then the arrays in the order in which `ShortCodes` names them.
    """
    header = _HEADER.pack(
        _MAGIC,
        *short_codes.codes.shape,
        len(short_codes.inverse_norms),
        short_codes.boundaries is not None,
    )
    arrays = (short_codes.codes, short_codes.lengths, short_codes.counts, short_codes.inverse_norms)
    parts = [array.tobytes() for array in arrays]
    return b"".join([header, *parts, _boundaries_to_bytes(short_codes)])


def _boundaries_to_bytes(short_codes: ShortCodes) -> bytes:
    return b"" if short_codes.boundaries is None else short_codes.boundaries.tobytes()


def read(data: bytes) -> ShortCodes | None:
    """Return the short codes that `to_bytes` wrote, or None if `data` is anything else."""
    if len(data) < _HEADER.size:
        return None
    magic, words, word_bytes, span_count, has_boundaries = _HEADER.unpack_from(data)
    lengths_at = _HEADER.size + words * word_bytes
    counts_at = lengths_at + words
    norms_at = counts_at + words
    boundaries_at = norms_at + span_count
    if magic != _MAGIC or len(data) != boundaries_at + words * has_boundaries:
        return None
    if sum(data[counts_at:norms_at]) != span_count:
        return None
    values = np.frombuffer(data, np.uint8)
    return ShortCodes(
        values[_HEADER.size : lengths_at].reshape(words, word_bytes),
        values[lengths_at:counts_at],
        values[counts_at:norms_at],
        values[norms_at:boundaries_at],
        values[boundaries_at:] if has_boundaries else None,
    )


def belong_to(short_codes: ShortCodes, tokens: WordCodes) -> bool:
    """Return whether short codes are those of sound word codes, but for another rounding."""
    expected = shorten(tokens)
    if short_codes.codes.shape != expected.codes.shape:
        return False
    return (
        np.array_equal(short_codes.counts, expected.counts)
        and _boundaries_to_bytes(short_codes) == _boundaries_to_bytes(expected)
        and _differ_by_rounding(short_codes.lengths, expected.lengths)
        and _differ_by_rounding(short_codes.inverse_norms, expected.inverse_norms)
        and two_bit_codes.are_near(short_codes.codes, expected.codes)
    )


def estimate_best_spans(
    query: Floats,
    passages: Sequence[ShortCodes],
    prior: SpanPrior | None = None,
    span_filter: SpanFilter | None = None,
    margin: float = 0.0,
) -> Estimates:
    """Return the estimated cosine and score of the best spans of each passage.

    Args:
        query: A unit vector, float32 ``[dimension]``.
        passages: The short codes of the passages; all must `fit` the query and the prior.
        prior: What is added to the cosine of each span, if anything.
        span_filter: Which spans count, if not all do.
        margin: By how much the difference of two cosines may be off.
    """
    if not passages:
        none = np.zeros(0, np.float32)
        return Estimates(none, none, none)
    counts = np.concatenate([passage.counts for passage in passages])
    cosines = _estimate_cosines(query, passages, counts)
    scores = cosines if prior is None else cosines + _join_priors(passages, counts, prior)
    span_counts = np.array([len(passage.inverse_norms) for passage in passages], np.intp)
    if span_filter is None:
        best = spans.find_highest_joined(cosines, span_counts)
        best_scores = best if prior is None else spans.find_highest_joined(scores, span_counts)
        return Estimates(best, best_scores, np.zeros_like(best))
    nearness = _estimate_nearness(cosines, passages, counts, span_filter)
    may_count, surely_counts = nearness >= -margin, nearness >= margin
    best, highest, least = (
        spans.find_highest_joined(np.where(flags, values, NO_SCORE), span_counts)
        for flags, values in ((may_count, cosines), (may_count, scores), (surely_counts, scores))
    )
    return Estimates(best, highest, highest - least)


def _join_priors(passages: Sequence[ShortCodes], counts: Bytes, prior: SpanPrior) -> Floats:
    """Return the prior of all spans of all passages, float32 ``[spans]``."""
    boundaries = [passage.boundaries for passage in passages if passage.boundaries is not None]
    # behind the last word of a passage is a boundary, and so is before the first of the next one
    certain = np.full(1, 255, np.uint8)
    probabilities = np.concatenate([*boundaries, certain], dtype=np.float32) / np.float32(255)
    return prior.combine(probabilities, counts)


def _estimate_nearness(
    cosines: Floats, passages: Sequence[ShortCodes], counts: Bytes, span_filter: SpanFilter
) -> Floats:
    """Return how much nearer each span is to the phrase than to what is not meant, about.

    It is -inf for the span of another speaker, and inf for all others if everything is meant.
    """
    nearness = np.full(len(cosines), np.inf, np.float32)
    for vector in span_filter.not_vectors:
        np.minimum(nearness, cosines - _estimate_cosines(vector, passages, counts), out=nearness)
    if span_filter.speakers:
        are_said = [
            find_words_of(span_filter.speakers, passage.turns, len(passage.counts))
            for passage in passages
        ]
        nearness[~np.repeat(np.concatenate(are_said), counts)] = -np.inf
    return nearness


def _estimate_cosines(query: Floats, passages: Sequence[ShortCodes], counts: Bytes) -> Floats:
    """Return about the cosines of all spans of all passages, float32 ``[spans]``."""
    lengths = np.concatenate([passage.lengths for passage in passages])
    norms = np.concatenate([passage.inverse_norms for passage in passages])
    codes = np.concatenate([passage.codes for passage in passages])
    products = two_bit_codes.multiply(codes, query) * _DECODED[lengths]
    return spans.cosines(products, np.arange(len(counts)), counts, _DECODED[norms])


def _differ_by_rounding(lengths: Bytes, others: Bytes) -> bool:
    """Return whether rounded lengths are at most one step apart."""
    steps = np.abs(lengths.astype(np.int16) - others)
    return bool(steps.max(initial=0) <= 1)


def _round_lengths(lengths: Floats) -> Bytes:
    """Return lengths as codes: the logarithm in `STEPS` an octave, and 0 for no length."""
    with np.errstate(divide="ignore"):
        codes = np.rint(np.log2(lengths) * STEPS + MIDDLE).clip(1, 255)
    return np.where(lengths > 0, codes, 0).astype(np.uint8)


def _decode_lengths() -> Floats:
    lengths = np.exp2((np.arange(256) - MIDDLE) / STEPS).astype(np.float32)
    lengths[0] = 0.0
    return lengths


_DECODED = _decode_lengths()
