"""Candidates of a request: find them, complete both scores of each, and fuse the two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Candidates, Key, Request, StoredPassage
from hybrid_search.search import damage, fusion
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.types import Legs, Ranks, ScoredPassage, Scores
from hybrid_search.text.joined_cosines import span_cosines_by_passage
from hybrid_search.text.span_filter import has_span
from hybrid_search.text.types import Floats
from hybrid_search.text.words import distinct_words


@dataclass(frozen=True, slots=True, eq=False)
class Retrieved:
    """The candidates of a request or of several, how they were found, and any damage.

    `warnings` are sentences for the plan of the result.
    """

    passages: list[ScoredPassage]
    method: str
    warnings: Sequence[str] = ()


def rank(
    backend: Backend,
    index: str,
    request: Request,
    name: str,
    alpha: float,
    calibration: Calibration,
) -> Retrieved:
    """Return the candidates of a request with the score of the fusion `name`."""
    answer = retrieve(backend, index, request)
    return replace(answer, passages=fuse(answer.passages, request, name, alpha, calibration))


def retrieve(backend: Backend, index: str, request: Request) -> Retrieved:
    """Return the candidates of both legs, each with both scores."""
    candidates = backend.find_candidates(index, request)
    keys = [*candidates.lexical, *candidates.semantic, *candidates.damaged]
    passages, warnings = complete_scores(backend, index, request, keys, candidates)
    return Retrieved(passages, candidates.method, [*candidates.warnings, *warnings])


def complete_scores(
    backend: Backend,
    index: str,
    request: Request,
    keys: Sequence[Key],
    candidates: Candidates | None = None,
) -> tuple[list[ScoredPassage], list[str]]:
    """Return the passages of `keys`, each once, with BM25 and the cosines of all their spans.

    Passages with damaged word codes are left out, and named in the second list, the warnings. If a
    span filter applies, passages without a counting span are left out, too.
    """
    stored = backend.complete_candidates(index, request, list(dict.fromkeys(keys)), candidates)
    cosines = _find_computed(stored, candidates) if candidates else {}
    unscored = {passage.key: passage.tokens for passage in stored if passage.key not in cosines}
    new_codes = list(unscored.values())
    new_cosines: Iterable[Floats | None] = span_cosines_by_passage(request.vector, new_codes)
    if request.span_filter:
        new_cosines = request.span_filter.apply(new_cosines, new_codes)
    cosines |= zip(unscored, new_cosines, strict=True)
    sound: list[tuple[StoredPassage, Floats]] = []
    damaged: list[StoredPassage] = []
    for passage in stored:
        passage_cosines = cosines[passage.key]
        if passage_cosines is None:
            damaged.append(passage)
        elif not request.span_filter or has_span(passage_cosines):
            sound.append((passage, passage_cosines))
    return _score_spans(request, sound), damage.describe_left_out(index, damaged)


def _find_computed(
    stored: Sequence[StoredPassage], candidates: Candidates
) -> dict[Key, Floats | None]:
    """Return the cosines already computed from exactly these word codes.

    A passage found to be damaged since then has other, unreadable codes.
    """
    codes = candidates.all_codes
    return {
        passage.key: candidates.cosines[passage.key]
        for passage in stored
        if passage.key in candidates.cosines and codes[passage.key] is passage.tokens
    }


def _score_spans(
    request: Request,
    cosines_by_passage: Sequence[tuple[StoredPassage, Floats]],
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
    fuse_legs = fusion.get_fusion(name)
    scores, bm25_parts, span_parts = (
        fuse_legs(legs, weight).tolist() for weight in (alpha, 0.0, 1.0)
    )
    parts = zip(bm25_parts, span_parts, strict=True)
    ranks = zip(legs.bm25_rank.tolist(), legs.cosine_rank.tolist(), strict=True)
    return [
        passage.with_fusion(score, passage_parts, passage_ranks, legs.terms)
        for passage, score, passage_parts, passage_ranks in zip(
            passages, scores, parts, ranks, strict=True
        )
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
