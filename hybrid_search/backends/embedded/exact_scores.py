"""Scores every span of the passages that are proposed for the span leg."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace

from hybrid_search.backends.embedded import sql
from hybrid_search.backends.embedded.number_columns import Numbers
from hybrid_search.backends.embedded.readers import Reader
from hybrid_search.backends.embedded.segment_reader import SegmentReader
from hybrid_search.backends.turn_layout import find_turns
from hybrid_search.backends.types import Key, Request
from hybrid_search.text import token_codes
from hybrid_search.text.token_codes import BestPassages
from hybrid_search.text.types import TokenCodes


def score_nearest(
    reader: Reader,
    current_segments: SegmentReader,
    request: Request,
    allowed: Numbers | None,
    by_words: Collection[Key],
) -> BestPassages:
    """Return the best of the nearest passages and those `by_words`, and the damaged ones.

    More are scored if fewer than the request's window are left without those that are damaged, and
    those that are near only by a span that does not count. So as many are left as if there were no
    such spans.
    """
    least = request.window
    while True:
        passages = current_segments.find_passages(request.vector, least, allowed)
        best = score(reader, request, passages, by_words)
        damaged = set(best.damaged).intersection(passages.tolist())
        usable = len(passages) - len(damaged) - best.outdone
        if usable >= request.window or least >= len(current_segments):
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
    if request.span_filter:
        codes = read_codes(reader, request, stored)
        best = token_codes.best_passages(
            request.vector, codes, request.window, request.span_filter, by_words
        )
    else:
        best = token_codes.best_stored_passages(request.vector, stored, request.window, by_words)
    missing = [number for number in numbers if number not in stored]
    return replace(best, damaged=[*best.damaged, *missing])


def read_codes(
    reader: Reader, request: Request, stored: Mapping[Key, bytes]
) -> dict[Key, TokenCodes]:
    """Return stored token codes, with their turns if the request asks for speakers."""
    codes = {number: token_codes.read(data) for number, data in stored.items()}
    if request.speakers:
        for number, place in sql.read_layouts(reader.connection, list(codes)):
            start, layout = json.loads(place)
            turns = find_turns(layout, start, codes[number])
            codes[number] = replace(codes[number], turns=turns)
    return codes
