"""Feedback: the vector of the second search, by naive arithmetic, and what the answer shows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hybrid_search.backends.types import Request, StoredPassage
from hybrid_search.client import Client
from hybrid_search.search.calibration import MOVED_MENTIONS
from hybrid_search.search.feedback import add_feedback
from hybrid_search.search.types import ScoredPassage
from hybrid_search.text import word_codes
from hybrid_search.text.types import Floats, WordCodes
from hybrid_search.text.word_vectors import NORM_STEPS
from tests.helpers.random_codes import no_codes, random_codes, unit_query
from tests.helpers.shipped_maps import load_map

PHRASE = "lost luggage"
LOCKED = "airline-006"
"""A call in which "it says I'm shut out until tomorrow"."""


def scale(vector: Floats) -> Floats:
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def best_span_vector(request: Request, tokens: WordCodes) -> Floats:
    """Build every span's vector and return the nearest, as the product never does.

    Examples in which two spans are too near each other to say which is are left out: a stored norm
    is off by up to half a step, which is a 250th of the sum of its rows' lengths.
    """
    vectors = word_codes.vectors(tokens)
    lengths, means, highest = np.linalg.norm(vectors, axis=1), list[Floats](), list[float]()
    lowest = list[float]()
    for first, count in enumerate(tokens.counts.tolist()):
        for last in range(first, first + count):
            rows = slice(tokens.rows[first], tokens.rows[last] + 1)
            total = vectors[rows].sum(axis=0)
            mean = scale(total)
            cosine = float(mean @ request.vector)
            # a tenth is added below: an error e of a norm moves a cosine by 1 / (1 - e)
            off = abs(cosine) * lengths[rows].sum() / (2 * NORM_STEPS * np.linalg.norm(total))
            means.append(mean)
            lowest.append(cosine - 1.1 * off)
            highest.append(cosine + 1.1 * off)
    best = int(np.argmax(lowest))
    assume(all(lowest[best] > other for span, other in enumerate(highest) if span != best))
    return means[best]


def scored_passage(request: Request, seed: int, document: str, score: float) -> ScoredPassage:
    tokens = random_codes(seed) if seed else no_codes()
    cosines = word_codes.cosines(request.vector, tokens)
    stored = StoredPassage(seed, document, seed, 0.0, tokens)
    best = float(cosines.max(initial=0.0))
    return ScoredPassage(stored, request, cosines, best, best, score=score)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 2**31), st.integers(1, 4))
def test_the_vector_is_halfway_to_the_best_spans_of_the_best_documents(
    seed: int, documents: int
) -> None:
    request = Request("phrase", unit_query(seed), 100)
    passages = [
        scored_passage(request, seed + number, f"call-{number // 2}", score=1.0 - 0.1 * number)
        for number in range(8)  # two of each of four calls, the better one first
    ]
    wordless = scored_passage(request, 0, "silence", score=2.0)
    moved = add_feedback(request, [wordless, *reversed(passages)], documents)
    best_passages = passages[: 2 * documents : 2]
    best = [best_span_vector(request, passage.stored.tokens) for passage in best_passages]
    expected = scale(request.vector + scale(np.mean(best, axis=0)))
    assert moved.vector == pytest.approx(expected, abs=1e-4)
    assert moved.phrase == request.phrase


def test_without_an_answer_the_phrase_stays_as_it_is() -> None:
    request = Request("phrase", unit_query(1), 100)
    assert add_feedback(request, [], 10) is request


def test_what_says_the_same_in_other_words_moves_up(sample: Client) -> None:
    plain, again = (sample.query("account locked", feedback=feedback) for feedback in (0, 10))
    assert again.hits[0].id == LOCKED != plain.hits[0].id
    assert (again.plan["feedback"], "feedback" in plain.plan) == (10, False)
    for hit in again:
        assert 0 <= hit.score <= 1
        assert -1 <= hit.cosine <= 1.001
        assert all(-1 <= span.cosine <= 1.001 for span in hit.spans)


def test_each_of_several_phrases_has_its_own_feedback(sample: Client) -> None:
    together = sample.query([PHRASE, "refund request"], feedback=5, size=1000)
    alone = [sample.query(phrase, feedback=5, size=1000) for phrase in (PHRASE, "refund request")]
    best = {hit.id: hit.score for hit in alone[0]}
    for hit in alone[1]:
        best[hit.id] = max(hit.score, best.get(hit.id, 0.0))
    assert {hit.id: hit.score for hit in together} == pytest.approx(best, abs=1e-6)


def test_the_index_may_be_empty(client: Client) -> None:
    client.setup("calls")
    assert client.query(PHRASE, feedback=10).hits == []


def test_probabilities_are_by_the_map_for_moved_phrases(sample: Client) -> None:
    result = sample.query(PHRASE, feedback=10, min_probability=0)
    moved = load_map(MOVED_MENTIONS)
    for span in (span for hit in result for span in hit.spans):
        (expected,) = moved.span(np.array([span.cosine + span.prior]))
        assert span.probability == pytest.approx(expected)
    assert result.plan["probabilities"] == "measured"
