"""Scores every span of the passages that are proposed for the span leg."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

import numpy as np

from hybrid_search.backends.embedded.passage_documents import Numbers
from hybrid_search.backends.embedded.snapshot import Snapshot
from hybrid_search.backends.types import Key, Request
from hybrid_search.text.best_passages import BestPassages, best_passages, best_stored_passages

FEWEST_DOCUMENTS = 0.5
"""Of how many documents the nearest passages are, for each that the window has room for.

If a few long documents take nearly all, more are compared, which takes longer.
"""


def score_nearest(
    snapshot: Snapshot, request: Request, allowed: Numbers | None, by_words: Collection[Key]
) -> BestPassages:
    """Return the best of the nearest passages, those `by_words`, and the damaged ones.

    More are scored where these are of too few documents, or fewer than the request's window without
    those that are damaged, or near only by a span that does not count.
    """
    least, documents = request.window, snapshot.documents
    while True:
        passages = snapshot.find_near(request.vector, least, request.window, allowed)
        best = score(snapshot, request, passages, by_words)
        sound = np.setdiff1d(passages, best.damaged) if best.damaged else passages
        is_enough = len(sound) - best.outdone >= request.window
        found = documents.count(sound)
        enough = FEWEST_DOCUMENTS * request.window
        if (found >= enough and is_enough) or least >= len(snapshot):
            return best
        everything = documents.passages if allowed is None else allowed
        if is_enough and found == documents.count(everything):
            return best
        least = 2 * max(least, len(passages))


def score(
    snapshot: Snapshot, request: Request, passages: Numbers, by_words: Collection[Key]
) -> BestPassages:
    """Return the best of `passages` by all their spans, those `by_words`, and the damaged ones."""
    numbers = sorted({*passages.tolist(), *by_words})
    choose = partial(snapshot.documents.choose, window=request.window)
    if request.span_filter:
        codes = snapshot.read_codes(numbers, with_turns=bool(request.speakers))
        return best_passages(request.vector, codes, choose, request.span_filter, by_words)
    stored = snapshot.read_stored_codes(numbers)
    best = best_stored_passages(request.vector, stored, choose, by_words)
    missing = [number for number in numbers if number not in stored]
    return replace(best, damaged=[*best.damaged, *missing])
