"""Scores every span of the passages that are proposed for the span leg."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hybrid_search.backends.embedded.number_columns import Numbers
from hybrid_search.backends.embedded.readers import Reader
from hybrid_search.backends.embedded.segment_reader import SegmentReader
from hybrid_search.backends.types import Key, Request
from hybrid_search.text import token_codes
from hybrid_search.text.token_codes import BestPassages


def score_nearest(
    reader: Reader,
    current_segments: SegmentReader,
    request: Request,
    allowed: Numbers | None,
    by_words: Collection[Key],
) -> BestPassages:
    """Return the best of the nearest passages and those `by_words`, and the damaged ones.

    If so many of the nearest are damaged that fewer than the request's window are left, more are
    scored.
    """
    least = request.window
    while True:
        passages = current_segments.find_passages(request.vector, least, allowed)
        best = score(reader, request, passages, by_words)
        damaged = set(best.damaged).intersection(passages.tolist())
        if len(passages) - len(damaged) >= request.window or least >= len(current_segments):
            return best
        least = 2 * max(least, len(passages))


def score(
    reader: Reader, request: Request, passages: Numbers, by_words: Collection[Key]
) -> BestPassages:
    """Return the best of all passages, and with the damaged ones those that have no codes.

    All spans of `passages` and of those `by_words` are scored. The best `request.window` come
    first, and then the others `by_words`. Those without codes may have been deleted meanwhile.
    """
    numbers = sorted({*passages.tolist(), *by_words})
    stored = reader.codes.read(reader.connection, numbers)
    best = token_codes.best_stored_passages(request.vector, stored, request.window, by_words)
    missing = [number for number in numbers if number not in stored]
    return replace(best, damaged=[*best.damaged, *missing])
