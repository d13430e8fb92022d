"""How windows that propose passages are measured: shares worked out by hand, and real codes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.quality import windows
from hybrid_search.text import spans, word_codes
from hybrid_search.text.types import Floats, WordCodes
from tests.helpers.random_codes import pack_words
from tests.helpers.tiny_encoder import make_prior

WORDS = 7


def make_tokens(dimension: int) -> WordCodes:
    """Return the codes of one turn of words of one token each, with random vectors."""
    vectors = np.random.default_rng(3).normal(size=(WORDS, dimension)).astype(np.float32)
    codes = pack_words(vectors, spans.counts(WORDS, WORDS))
    return replace(codes, boundaries=np.full(WORDS, 51, np.uint8))


def make_queries(dimension: int) -> Floats:
    queries = np.random.default_rng(4).normal(size=(3, dimension)).astype(np.float32)
    unit: Floats = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    return unit


def test_the_best_passages_count_if_windows_or_words_propose_them() -> None:
    """Of twelve passages the first ten are the best, and windows propose the last four.

    Two of these, 8 and 9, are among the best. Words propose the passages 0, 8 and 11, of which
    only 0 is new: 3 of 10. For the second phrase windows alone propose 8 to 11: 2 of 10.
    """
    exact = np.repeat(np.arange(12, 0, -1, dtype=np.float32)[:, None], 2, axis=1)
    nearest = np.repeat(np.arange(12, dtype=np.float32)[:, None], 2, axis=1)
    by_words = [np.isin(np.arange(12), [0, 8, 11]), np.zeros(12, bool)]
    assert windows.share_of_best(nearest, by_words, exact, 4) == pytest.approx((0.3 + 0.2) / 2)


def test_windows_of_one_word_with_all_numbers_have_the_cosines_of_the_words() -> None:
    tokens, queries = make_tokens(16), make_queries(16)
    vectors = word_codes.vectors(tokens)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert windows.find_nearest(tokens, queries, "1/1") == pytest.approx(
        (unit @ queries.T).max(axis=0), abs=1e-6
    )
    cut = unit[:, :5] / np.linalg.norm(unit[:, :5], axis=1, keepdims=True)
    cut_queries = queries[:, :5] / np.linalg.norm(queries[:, :5], axis=1, keepdims=True)
    assert windows.find_nearest(tokens, windows.cut_vectors(queries, 5), "1/1") == pytest.approx(
        (cut @ cut_queries.T).max(axis=0), abs=1e-6
    )


def test_the_best_spans_are_those_that_a_query_finds() -> None:
    tokens, queries, prior = make_tokens(8), make_queries(8), make_prior()
    cosines, scores = windows.find_best_spans(tokens, queries, prior)
    (priors,) = prior.score_passages([tokens])
    for query, cosine, score in zip(queries, cosines, scores, strict=True):
        expected = word_codes.cosines(query, tokens)
        assert cosine == pytest.approx(expected.max(), abs=1e-3)
        assert score == pytest.approx((expected + priors).max(), abs=1e-3)
