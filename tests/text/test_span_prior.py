"""The prior of spans: the same as enumerating them by hand, and 1 where a turn begins or ends."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.errors import ModelError
from hybrid_search.text import spans, word_codes
from hybrid_search.text.boundaries import (
    LEAST,
    BoundaryModel,
    boundary_probabilities,
    encode_boundaries,
    join_probabilities,
)
from hybrid_search.text.span_prior import WITHIN_TOKEN, SpanPrior
from hybrid_search.text.types import Floats, PassageTokens, WordCodes
from tests.helpers.random_codes import no_tokens, pack, random_codes, random_tokens

seeds = st.integers(0, 2**32 - 1)
quick = settings(deadline=None, max_examples=50)


def random_model(seed: int, dimension: int = 8, units: int = 3) -> BoundaryModel:
    random = np.random.default_rng(seed)
    hidden = random.standard_normal((2 * dimension, units)).astype(np.float32)
    hidden_bias, output = random.standard_normal((2, units)).astype(np.float32)
    return BoundaryModel(hidden, hidden_bias, output, float(random.standard_normal()))


def make_tokens(*turn_lengths: int) -> PassageTokens:
    """Return the tokens of turns of so many words, each with one token, "aaa" and a space long."""
    counts = np.concatenate([spans.counts(length, length) for length in turn_lengths])
    places = np.arange(len(counts)) * 4
    tokens = np.arange(len(counts))
    words = np.stack([places, places + 3, tokens, tokens + 1], axis=1).astype(np.int32)
    vectors = np.random.default_rng(7).standard_normal((len(counts), 2)).astype(np.float32)
    return PassageTokens(vectors, words, counts)


def add_boundaries(tokens: PassageTokens, model: BoundaryModel, text: str) -> WordCodes:
    """Return the codes of a passage with the boundaries that a model sees in it."""
    return pack(tokens, encode_boundaries(tokens, model, text))


def shift_words(tokens: PassageTokens, first: int) -> PassageTokens:
    """Return the tokens of a text with a comma before the word `first`."""
    words = tokens.words.copy()
    words[first:, :2] += 1
    return replace(tokens, words=words)


EVEN = BoundaryModel(
    np.zeros((4, 1), np.float32), np.zeros(1, np.float32), np.zeros(1, np.float32), 0.0
)
"""Says of every gap that it is a boundary with probability 1/2."""


def prior_by_hand(prior: SpanPrior, probabilities: Floats, counts: list[int]) -> list[float]:
    """Return the prior of every span, enumerated as `hybrid_search.text.spans` numbers them."""
    priors = []
    for first, count in enumerate(counts):
        for after in range(first + 1, first + count + 1):
            at_ends = probabilities[first] + probabilities[after]
            inside = sum(probabilities[first + 1 : after])
            length = math.log(after - first)
            cut = WITHIN_TOKEN * [probabilities[first], probabilities[after]].count(0)
            priors.append(
                prior.ends * at_ends - cut - prior.inside * inside + prior.length * length
            )
    return priors


@quick
@given(seeds)
def test_the_prior_of_every_span_is_that_of_the_enumeration(seed: int) -> None:
    model = random_model(seed)
    codes = add_boundaries(random_tokens(seed), model, "")
    prior = SpanPrior(model, 0.1, 0.03, 0.06)
    probabilities = np.append(join_probabilities([codes]), 1)
    expected = prior_by_hand(prior, probabilities, codes.counts.tolist())
    assert prior.score_spans(codes) == pytest.approx(expected, abs=1e-5)


@quick
@given(seeds)
def test_a_gap_has_the_probability_that_the_network_gives_its_two_tokens(seed: int) -> None:
    tokens, model = random_tokens(seed), random_model(seed)
    vectors = tokens.vectors
    for gap, probability in enumerate(boundary_probabilities(tokens, model)):
        if gap in (0, len(tokens.words)) or tokens.counts[gap - 1] == 1:
            assert probability == 1.0
            continue
        pair = np.concatenate(
            [vectors[tokens.words[gap - 1, 3] - 1], vectors[tokens.words[gap, 2]]]
        )
        units = np.maximum(pair @ model.hidden + model.hidden_bias, 0)
        logit = float(units @ model.output) + model.output_bias
        assert probability == pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-5)


def test_a_mark_is_a_boundary_and_makes_the_other_gaps_less_likely() -> None:
    codes = make_tokens(4)
    assert boundary_probabilities(codes, EVEN, "aaa aaa aaa aaa").tolist() == [1, 0.5, 0.5, 0.5, 1]
    marked = shift_words(codes, 2)
    less = replace(EVEN, unmarked=0.25)
    probabilities = boundary_probabilities(marked, less, "aaa aaa, aaa aaa")
    assert probabilities.tolist() == pytest.approx([1, 0.125, 1, 0.125, 1])


def test_an_end_within_a_token_costs_more_than_any_other() -> None:
    """Of "at 10:30 now" the gap at the colon is 0, and no other is, however sure the network."""
    never = replace(EVEN, output_bias=-30.0)
    words = np.array([[0, 2, 0, 1], [3, 5, 1, 2], [6, 8, 2, 3], [9, 12, 3, 4]], np.int32)
    codes = replace(make_tokens(4), words=words)
    probabilities = boundary_probabilities(codes, never, "at 10:30 now")
    assert probabilities.tolist() == pytest.approx([1, LEAST, 0, LEAST, 1])
    stored = add_boundaries(codes, never, "at 10:30 now")
    assert stored.boundaries is not None
    assert stored.boundaries.tolist() == [255, 1, 0, 1]
    prior = SpanPrior(never, ends=0.1, inside=0.03, length=0.06)
    expected = prior_by_hand(prior, probabilities, codes.counts.tolist())
    assert prior.score_spans(stored).tolist() == pytest.approx(expected, abs=1e-5)
    # the two words of a token are worth more together than either of them
    ten, time, _, thirty = prior.score_spans(stored).tolist()[4:8]
    assert max(ten, thirty) < time - WITHIN_TOKEN / 2


@pytest.mark.parametrize("tokens", [no_tokens(), make_tokens(1)])
def test_no_word_and_a_single_word_have_no_gap_inside(tokens: PassageTokens) -> None:
    model = random_model(1, tokens.vectors.shape[1])
    prior = SpanPrior(model, 0.1, 0.03, 0.06)
    assert boundary_probabilities(tokens, model).tolist() == [1.0] * (len(tokens.words) + 1)
    priors = prior.score_spans(add_boundaries(tokens, model, "")).tolist()
    assert priors == pytest.approx([0.2] * len(tokens.words))


def test_words_without_a_token_take_the_nearest_one() -> None:
    """The tokenizer dropped the characters of the last word, and of all words."""
    tokens = make_tokens(3)
    for token_count in (2, 0):
        words = tokens.words.copy()
        words[:, 2:] = np.minimum(words[:, 2:], token_count)
        shorter = PassageTokens(tokens.vectors[:token_count], words, tokens.counts)
        probabilities = boundary_probabilities(shorter, EVEN)
        assert np.isfinite(probabilities).all()
        assert len(probabilities) == len(words) + 1


@quick
@given(seeds)
def test_stored_boundaries_are_those_that_were_predicted(seed: int) -> None:
    tokens, model = random_tokens(seed), random_model(seed)
    stored = word_codes.read(word_codes.to_bytes(add_boundaries(tokens, model, "")))
    predicted = boundary_probabilities(tokens, model)
    # 255 steps from 0 to 1: half a step is the largest error
    np.testing.assert_allclose(
        np.append(join_probabilities([stored]), 1), predicted, atol=0.5 / 255 + 1e-6
    )


def test_codes_without_boundaries_have_no_prior() -> None:
    """Their index was written before its model had a prior."""
    model = random_model(5)
    prior, codes = SpanPrior(model, 0.1, 0.03, 0.06), random_codes(1)
    for passages in ([codes], [add_boundaries(random_tokens(1), model, ""), codes]):
        with pytest.raises(ModelError, match="no boundaries of clauses: query with spans_by"):
            list(prior.score_passages(passages))
    with pytest.raises(ModelError, match="ingest again into a new index"):
        prior.score_spans(codes)


def test_boundaries_know_the_punctuation_that_codes_do_not() -> None:
    codes = shift_words(make_tokens(6), 2)
    stored = add_boundaries(codes, replace(EVEN, unmarked=0.4), "aaa aaa, aaa aaa aaa aaa")
    marked = np.append(join_probabilities([stored]), 1)
    assert marked.tolist() == pytest.approx([1, 0.2, 1, 0.2, 0.2, 0.2, 1], abs=0.5 / 255)


@quick
@given(st.lists(seeds, max_size=6))
def test_passages_scored_together_have_the_priors_that_they_have_alone(
    codes_seeds: list[int],
) -> None:
    model = random_model(5)
    prior = SpanPrior(model, 0.1, 0.03, 0.06)
    codes = [add_boundaries(random_tokens(seed), model, "") for seed in codes_seeds]
    together = list(prior.score_passages(codes))
    assert len(together) == len(codes)
    for item, priors in zip(codes, together, strict=True):
        np.testing.assert_allclose(priors, prior.score_spans(item), atol=1e-5)
