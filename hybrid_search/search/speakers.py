"""Help with the name of a speaker that does not occur in an index."""

from __future__ import annotations

import logging
from dataclasses import replace

from hybrid_search.backends.base import Backend
from hybrid_search.backends.turn_layout import read_speakers
from hybrid_search.backends.types import Request

_log = logging.getLogger(__name__)

LOOKED_AT = 20
"""Number of passages whose speakers are listed."""


def explain_no_speaker(backend: Backend, index: str, request: Request) -> list[str]:
    """Log and return a warning that none of a request's speakers speaks near the phrase.

    Call it for a request that found nothing. The warning names the speakers of passages that the
    same request finds without its speakers; without such passages there is no warning.

    Returns:
        A list with the warning, or an empty list.
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
