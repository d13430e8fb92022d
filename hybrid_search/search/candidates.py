"""The passages of a request: found, scored, and their two scores fused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Request, StoredPassage
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.damage import describe_passages
from hybrid_search.search.fusion import FUSIONS
from hybrid_search.search.types import Legs, Ranks, ScoredPassage, Scores
from hybrid_search.text.best_passages import has_span
from hybrid_search.text.types import Floats
from hybrid_search.text.word_codes import span_cosines_by_passage
from hybrid_search.text.words import distinct_words

Candidates = tuple[list[ScoredPassage], str, Sequence[str]]
"""The passages of one or more requests, how they were found, and warnings about damage.

Warnings are sentences for the plan of the result.
"""


def rank(
    backend: Backend,
    index: str,
    request: Request,
    name: str,
    alpha: float,
    calibration: Calibration,
) -> Candidates:
    """Return the passages of a request with the score of the fusion `name`."""
    passages, method, warnings = retrieve(backend, index, request)
    return fuse(passages, request, name, alpha, calibration), method, warnings


def retrieve(backend: Backend, index: str, request: Request) -> Candidates:
    """Return the passages of both legs, each with both scores."""
    answer = backend.find(index, request)
    passages, warnings = score_passages(index, request, answer.passages)
    return passages, answer.method, warnings


def score_passages(
    index: str, request: Request, passages: Sequence[StoredPassage]
) -> tuple[list[ScoredPassage], list[str]]:
    """Return `passages` with the cosines of all their spans, and the best of them.

    Passages with damaged word codes are left out, and named in the second list, the warnings. If a
    span filter applies, passages without a counting span are left out, too.
    """
    without = [passage for passage in passages if passage.cosines is None]
    codes = [passage.tokens for passage in without]
    computed: Iterable[Floats | None] = span_cosines_by_passage(request.vector, codes)
    if request.span_filter:
        computed = request.span_filter.apply(computed, codes)
    new_cosines = dict(zip((passage.key for passage in without), computed, strict=True))
    sound: list[tuple[StoredPassage, Floats]] = []
    damaged: list[StoredPassage] = []
    for passage in passages:
        cosines = new_cosines.get(passage.key, passage.cosines)
        if cosines is None:
            damaged.append(passage)
        elif not request.span_filter or has_span(cosines):
            sound.append((passage, cosines))
    return _score_spans(request, sound), describe_passages(index, damaged, "codes")


def _score_spans(
    request: Request, cosines_by_passage: Sequence[tuple[StoredPassage, Floats]]
) -> list[ScoredPassage]:
    """Return the passages with score and cosine of their best span; both are 0 without spans."""
    priors: Iterable[Floats | None] = (
        request.prior.score_passages([passage.tokens for passage, _ in cosines_by_passage])
        if request.prior
        else repeat(None)
    )
    scored = []
    for (passage, cosines), passage_priors in zip(cosines_by_passage, priors, strict=False):
        scores = cosines if passage_priors is None else cosines + passage_priors
        best = int(scores.argmax()) if len(scores) else None
        cosine, score = (0.0, 0.0) if best is None else (float(cosines[best]), float(scores[best]))
        scored.append(ScoredPassage(passage, request, cosines, cosine, score, passage_priors))
    return scored


def fuse(
    passages: Sequence[ScoredPassage],
    request: Request,
    name: str,
    alpha: float,
    calibration: Calibration,
) -> list[ScoredPassage]:
    """Return `passages` with the score of the fusion `name`, its two parts, and both ranks."""
    legs = _build_legs(passages, request, calibration)
    scores, bm25_parts, span_parts = (
        FUSIONS[name](legs, weight).tolist() for weight in (alpha, 0.0, 1.0)
    )
    parts = zip(bm25_parts, span_parts, strict=True)
    ranks = zip(legs.bm25_rank.tolist(), legs.cosine_rank.tolist(), strict=True)
    columns = zip(passages, scores, ranks, parts, strict=True)
    return [
        ScoredPassage(  # dataclasses.replace takes three times as long
            passage.stored,
            passage.request,
            passage.cosines,
            passage.cosine,
            passage.span_score,
            passage.priors,
            score,
            *passage_ranks,
            passage_parts,
            legs.terms,
        )
        for passage, score, passage_ranks, passage_parts in columns
    ]


def _build_legs(
    passages: Sequence[ScoredPassage], request: Request, calibration: Calibration
) -> Legs:
    """Return the scores and ranks of `passages`. A leg that was not requested has no ranks."""
    ids = [(passage.stored.document_id, passage.stored.ordinal) for passage in passages]
    bm25 = np.array([passage.stored.bm25 for passage in passages])
    span = np.array([passage.span_score for passage in passages])
    bm25_ranks = rank_scores(bm25, ids, request.window)
    bm25_ranks[bm25 <= 0] = 0
    bm25_ranks *= request.lexical
    cosine_ranks = rank_scores(span, ids, request.window) * request.semantic
    return Legs(
        bm25, span, bm25_ranks, cosine_ranks, len(distinct_words(request.phrase)), calibration
    )


def rank_scores(scores: Scores, ids: Sequence[tuple[str, int]], window: int) -> Ranks:
    """Return ranks from 1, by score and then by id; 0 beyond `window`."""
    ranks = np.zeros(len(scores), dtype=np.int64)
    keys = list(zip((-scores).tolist(), ids, strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    ranks[order[:window]] = np.arange(1, min(window, len(order)) + 1)
    return ranks
