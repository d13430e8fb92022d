"""PiC's phrase retrieval (PR-pass, PR-page) by ranking the phrases of a document.

Does the phrase that means what the query says score highest? Candidates (section 5.3) are all runs
of 2 and 3 words inside sentences, and the answer, which may be longer: so an encoder is tested, and
no finder of phrases. One is right if its text is the answer's, in any case. Set-ups, whose cosine
(or score) ranks:

- `phrase`: query and candidate by themselves. Candidates of the same text are one.
- `phrase in context`: the query by itself, the candidate in its sentence; each place is a
  candidate.
- `both in context`: the query, too, in the candidate's sentence, at its place, as in the authors'
  published code (not in the paper's words). The encoder runs once for each candidate, 400 times a
  passage: ``swap=False`` leaves it out.
- `all spans in context`: as the second, of all spans of 1 to 20 words inside sentences, the answer
  not added: what the product looks at.

A candidate with the same score as the answer ranks before it, so equal scores for all gain nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality import bootstrap
from benchmarks.quality.sentences import sentences
from benchmarks.quality.systems import Range, Scorer, SpanEncoder, System, TextEncoder
from hybrid_search.text.types import Floats
from papers.pic import candidates, files
from papers.pic.files import Search

TOP = (1, 3, 5)
DEPTH = 5
"""Ranks from here on count nothing to MRR."""

ScoredTexts = tuple[list[str], Floats]
"""The candidates of a document and how alike each is to the query, float32 ``[candidates]``."""


def measure(
    system: System, data: Path, task: str, most: int | None = None, swap: bool = True
) -> dict[str, Any]:
    """Return the figures of each set-up that `system` supports, on the test rows of `task`.

    `task` is "pr-pass" or "pr-page"; with `most` only the first rows are used.
    """
    path = files.find_test_file(data, task)
    searches = files.read_searches(path, task)[:most]
    return {
        "file": path.name,
        "rows": len(searches),
        "setups": {name: figures(searches, setup) for name, setup in setups(system, swap)},
    }


def setups(system: System, swap: bool) -> Iterator[tuple[str, Callable[[Search], ScoredTexts]]]:
    """Yield the set-ups by name."""
    if isinstance(system, Scorer):
        yield "phrase", lambda search: rank_by_scores(system, search)
    if isinstance(system, TextEncoder):
        yield "phrase", lambda search: rank_phrases(system, search)
    if isinstance(system, SpanEncoder):
        yield (
            "phrase in context",
            lambda search: rank_in_context(system, search, candidates.ngrams(search)),
        )
        if swap:
            yield "both in context", lambda search: rank_both_in_context(system, search)
        yield (
            "all spans in context",
            lambda search: rank_in_context(
                system, search, candidates.list_word_runs(search.document, candidates.EVERY)
            ),
        )


def figures(searches: Sequence[Search], setup: Callable[[Search], ScoredTexts]) -> dict[str, Any]:
    """Return candidates a document, the share with the answer, and the accuracy of the ranking.

    Accuracy is top-1 with its 95% interval, top-3, top-5 and MRR@5, from 0 to 1.
    """
    counts, ranks = [], []
    for search in searches:
        texts, scores = setup(search)
        counts.append(len(texts))
        ranks.append(rank(texts, scores, search.answer))
    shares = {f"top-{k}": float(np.mean([position <= k for position in ranks])) for k in TOP}
    reciprocal = float(np.mean([1 / position if position <= DEPTH else 0.0 for position in ranks]))
    return {
        "candidates": round(float(np.mean(counts)), 1),
        "reachable": round(float(np.isfinite(ranks).mean()), 4),
        **{name: round(value, 4) for name, value in shares.items()},
        f"MRR@{DEPTH}": round(reciprocal, 4),
        "top-1 interval": bootstrap.summary([float(position <= 1) for position in ranks])[
            "interval"
        ],
    }


def rank(texts: Sequence[str], scores: Floats, answer: str) -> float:
    """Return the rank of the answer, from 1; inf if no candidate has its text.

    One more than the candidates of other texts that score no less than the best of the answer's.
    """
    right = np.array([text.casefold() == answer.casefold() for text in texts], dtype=bool)
    if not right.any():
        return float("inf")
    before = scores[~right] >= scores[right].max()
    return 1.0 + float(before.sum())


def rank_by_scores(system: Scorer, search: Search) -> ScoredTexts:
    """Rank by the scores of a system without vectors."""
    texts = _distinct_texts(search)
    return texts, system.scores([search.query] * len(texts), texts)


def rank_phrases(system: TextEncoder, search: Search) -> ScoredTexts:
    """Rank query and candidates by themselves."""
    texts = _distinct_texts(search)
    vectors = system.encode_texts([search.query, *texts])
    return texts, vectors[1:] @ vectors[0]


def rank_in_context(system: SpanEncoder, search: Search, places: Sequence[Range]) -> ScoredTexts:
    """Rank the query by itself against the candidates at `places` in their sentences."""
    vectors = candidates.vectors(
        system, candidates.group_by_context(search.document, places, sentences(search.document))
    )
    return _texts(search, places), vectors @ system.encode_texts([search.query])[0]


def rank_both_in_context(system: SpanEncoder, search: Search) -> ScoredTexts:
    """Rank the candidates in their sentences against the query in place of each."""
    places = candidates.ngrams(search)
    texts = candidates.group_by_context(search.document, places, sentences(search.document))
    scores: Floats = (
        candidates.vectors(system, texts) * candidates.swap_query(system, texts, search.query)
    ).sum(axis=1)
    return _texts(search, places), scores


def _texts(search: Search, places: Sequence[Range]) -> list[str]:
    return [search.document[start:end] for start, end in places]


def _distinct_texts(search: Search) -> list[str]:
    """Return the texts of the candidates, each once whatever its case."""
    return list(
        {text.casefold(): text for text in _texts(search, candidates.ngrams(search))}.values()
    )
