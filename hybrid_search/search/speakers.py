"""Help with the name of a speaker that nobody in an index has."""

from __future__ import annotations

import logging
from dataclasses import replace

from hybrid_search.backends.base import Backend
from hybrid_search.backends.turn_layout import read_speakers
from hybrid_search.backends.types import Request

_log = logging.getLogger(__name__)

LOOKED_AT = 20
"""Passages whose speakers are named."""


def explain_no_speaker(backend: Backend, index: str, request: Request) -> list[str]:
    """Log and return a warning that none of a request's speakers speaks near the phrase.

    It names those who do, and is for a request that found nothing. Without any passage for the
    same request of all speakers there is nothing to say.

    Returns:
        The warning alone, or nothing.
    """
    of_all = replace(request, span_filter=None, page_order=None)
    candidates = backend.find_candidates(index, of_all)
    keys = list(dict.fromkeys([*candidates.semantic, *candidates.lexical]))[:LOOKED_AT]
    contents = backend.fetch_contents(index, keys).values() if keys else ()
    speakers = sorted({name for content in contents for name in read_speakers(content.layout)})
    if not contents or set(speakers).intersection(request.speakers):
        return []
    missing = " or ".join(map(repr, request.speakers))
    names = ", ".join(map(repr, speakers)) or "none: their turns have no speaker"
    warning = (
        f"no speaker is called {missing} (names are compared exactly): "
        f"the speakers of the nearest passages are {names}"
    )
    _log.warning("%s", warning)
    return [warning]
