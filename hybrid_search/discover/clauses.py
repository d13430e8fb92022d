"""Choose spans of a block of passages: its clauses, or what in them is nearest to a phrase."""

from __future__ import annotations

import numpy as np

from hybrid_search.discover.types import ChosenSpans
from hybrid_search.errors import ModelError
from hybrid_search.text import spans, word_codes
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Floats
from hybrid_search.topics.joined_passages import JoinedPassages, join_passages
from hybrid_search.topics.mention_choice import choose_rows
from hybrid_search.topics.types import Candidates, Integers, ScannedBlock


def require_prior(prior: SpanPrior | None, model: str) -> SpanPrior:
    """Return the prior. Raises ModelError if the model has none."""
    if prior is None:
        raise ModelError(
            f"model {model!r} does not tell where a clause ends, so nothing can be discovered "
            "with it: ingest with the shipped model, or with one that has a span prior"
        )
    return prior


def find_clauses(
    block: ScannedBlock, dimension: int, prior: SpanPrior, least_words: int
) -> ChosenSpans:
    """Return each clause of a block: of all spans inside it the one with the largest prior.

    That is the whole clause, or the best part of one that is longer than a span can be.

    Args:
        block: Some passages.
        dimension: That of the index.
        prior: Says where clauses begin and end.
        least_words: Clauses whose best span has fewer words are left out.
    """
    joined, damaged = join_passages(block, dimension, prior)
    if joined is None or joined.priors is None:
        return ChosenSpans.empty(dimension, damaged)
    first, last = spans.bounds(joined.tokens.counts)
    clauses = _number_clauses(joined)
    inside = np.flatnonzero(clauses[first] == clauses[last])
    order = inside[np.lexsort((-joined.priors[inside], clauses[first[inside]]))]
    best = order[np.diff(clauses[first[order]], prepend=-1) != 0]
    best = best[last[best] - first[best] + 1 >= least_words]
    no_cosines = np.zeros(len(best), dtype=np.float32)
    return _build(joined, first[best], last[best], joined.priors[best], no_cosines, damaged)


def find_similar(
    block: ScannedBlock, phrase: Floats, prior: SpanPrior | None, least_cosine: float
) -> ChosenSpans:
    """Return the best span of each clause of a block among those near a phrase, exactly.

    Spans are chosen as mining chooses them: by cosine and prior, at most one for a clause.

    Args:
        block: Whole documents or not: clauses never cross passages.
        phrase: A unit vector, float32 ``[dimension]``.
        prior: The prior, if the model has one.
        least_cosine: Spans with a smaller cosine are not looked at, -1..1.
    """
    joined, damaged = join_passages(block, len(phrase), prior)
    if joined is None:
        return ChosenSpans.empty(len(phrase), damaged)
    cosines = word_codes.cosines(phrase, joined.tokens)
    near = np.flatnonzero(cosines >= least_cosine)
    first, last = (bounds[near] for bounds in spans.bounds(joined.tokens.counts))
    priors = np.zeros(len(near), np.float32) if joined.priors is None else joined.priors[near]
    rows = choose_rows(_as_candidates(joined, first, last, cosines[near], priors))
    return _build(joined, first[rows], last[rows], priors[rows], cosines[near][rows], damaged)


def _number_clauses(joined: JoinedPassages) -> Integers:
    """Return the number of each word's clause in the block, int64 ``[words]``."""
    is_first = np.diff(joined.owners, prepend=-1) != 0
    is_first |= np.diff(joined.clause_starts, prepend=-1) != 0
    numbers: Integers = np.cumsum(is_first)
    return numbers


def _as_candidates(
    joined: JoinedPassages, first: Integers, last: Integers, cosines: Floats, priors: Floats
) -> Candidates:
    """Return spans as candidates of one topic, each passage a document of its own."""
    owners, same = joined.owners[first], np.zeros(len(first), dtype=np.int64)
    return Candidates(
        owners,
        owners,
        same,
        same,
        cosines,
        cosines + priors,
        joined.starts[first],
        joined.ends[last],
        joined.clause_starts[first],
        joined.clause_ends[last],
    )


def _build(
    joined: JoinedPassages,
    first: Integers,
    last: Integers,
    priors: Floats,
    cosines: Floats,
    damaged: int,
) -> ChosenSpans:
    """Return the spans from word `first` to word `last`, with their vectors."""
    return ChosenSpans(
        joined.owners[first],
        joined.starts[first],
        joined.ends[last],
        priors,
        cosines,
        _pool(joined, first, last),
        damaged,
    )


def _pool(joined: JoinedPassages, first: Integers, last: Integers) -> Floats:
    """Return the unit vector of each span, the mean of its tokens; zeros if it has none."""
    vectors, rows = word_codes.vectors(joined.tokens), joined.tokens.rows
    vectors = np.concatenate([vectors, np.zeros_like(vectors[:1])])
    # the sums of the rows between two places: every second one is what lies between two spans
    places = np.stack([rows[first], rows[last] + 1], axis=1).ravel()
    sums = np.add.reduceat(vectors, places)[::2] if len(places) else vectors[:0]
    return normalize_rows(sums)


def normalize_rows(vectors: Floats) -> Floats:
    """Return the rows with length 1, float32; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Floats = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return units
