"""Scores every span of the passages that are proposed for the span leg."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from hybrid_search.backends.embedded import sql
from hybrid_search.backends.embedded.number_columns import Numbers
from hybrid_search.backends.embedded.passage_documents import PassageDocuments
from hybrid_search.backends.embedded.readers import Reader
from hybrid_search.backends.embedded.segment_reader import SegmentReader
from hybrid_search.backends.turn_layout import find_turns
from hybrid_search.backends.types import Key, Request
from hybrid_search.backends.window import choose_window
from hybrid_search.text import word_codes
from hybrid_search.text.best_passages import BestPassages, best_passages, best_stored_passages
from hybrid_search.text.types import WordCodes

FEWEST_DOCUMENTS = 0.5
"""Of how many documents the nearest passages are, for each that the window has room for.

Those that were compared are of more, unless a few long documents take nearly all. Then more are
compared, which takes longer.
"""


def score_nearest(
    reader: Reader,
    current_segments: SegmentReader,
    request: Request,
    allowed: Numbers | None,
    by_words: Collection[Key],
    documents: PassageDocuments,
) -> BestPassages:
    """Return the best of the nearest passages, those `by_words`, and the damaged ones.

    More are scored where fewer than the request's window are left without those that are damaged,
    and those that are near only by a span that does not count, or where they are of too few
    documents. So as many are left as if there were no such spans.
    """
    least = request.window
    while True:
        passages = current_segments.find_passages(
            request.vector, least, request.window, documents, allowed
        )
        best = score(reader, request, passages, by_words, documents)
        sound = np.setdiff1d(passages, best.damaged) if best.damaged else passages
        is_enough = len(sound) - best.outdone >= request.window
        found = documents.count(sound)
        enough = FEWEST_DOCUMENTS * request.window
        if (found >= enough and is_enough) or least >= len(current_segments):
            return best
        if is_enough and found == documents.count(current_segments.list_passages(allowed)):
            return best
        least = 2 * max(least, len(passages))


def score(
    reader: Reader,
    request: Request,
    passages: Numbers,
    by_words: Collection[Key],
    documents: PassageDocuments,
) -> BestPassages:
    """Return the passages in the window of the span leg, and with the damaged ones the lost ones.

    All spans of `passages` and of those `by_words` are scored. Those without codes may have been
    deleted meanwhile.
    """
    numbers = sorted({*passages.tolist(), *by_words})
    stored = reader.codes.read(reader.connection, numbers)

    def choose(ranked: list[Key]) -> list[Key]:
        chosen = choose_window(documents.find(ranked).tolist(), request.window)
        return [ranked[position] for position in chosen]

    if request.span_filter:
        codes = read_codes(reader, request, stored)
        best = best_passages(request.vector, codes, choose, request.span_filter, by_words)
    else:
        best = best_stored_passages(request.vector, stored, choose, by_words)
    missing = [number for number in numbers if number not in stored]
    return replace(best, damaged=[*best.damaged, *missing])


def read_codes(
    reader: Reader, request: Request, stored: Mapping[Key, bytes]
) -> dict[Key, WordCodes]:
    """Return stored word codes, with their turns if the request asks for speakers."""
    codes = {number: word_codes.read(data) for number, data in stored.items()}
    if request.speakers:
        for number, place in sql.read_layouts(reader.connection, list(codes)):
            start, layout = json.loads(place)
            turns = find_turns(layout, start, codes[number])
            codes[number] = replace(codes[number], turns=turns)
    return codes
