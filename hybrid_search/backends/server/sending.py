"""Bulk actions, sent until each was taken or refused for good."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator

from hybrid_search.backends.server import retry
from hybrid_search.backends.server.base import Body, Outcome, Server
from hybrid_search.errors import ServerError

TRIES = 10
"""Rounds of what was not taken for now. With the growing pauses between them they last two minutes on average, the time of a server's restart."""

_log = logging.getLogger(__name__)


def sent(server: Server, actions: Iterable[Body]) -> Iterator[Outcome]:
    """What finally became of each action, in the order in which it was known. Only those that were not taken are sent again.

    Every action names its ``_id``, so one that was taken although its answer was lost does no harm by coming again. Raises ServerError when
    some are still not taken in the last round; those are all that is missing, and the same command sends them again.
    """
    pauses = retry.pauses(TRIES)
    while True:
        later: list[Outcome] = []
        for outcome in server.bulk(actions):
            if outcome.passing:
                later.append(outcome)
            else:
                yield outcome
        if not later:
            return
        pause = next(pauses, None)
        if pause is None:
            raise ServerError(
                f"{server} did not take {len(later)} passages in {TRIES} rounds: {later[0].reason or later[0].status}. "
                "What it took is safe: see to the server, and run the same command again",
                later[0].status,
            )
        _log.info("%d actions were not taken (%s): again in %.1f s", len(later), later[0].reason or later[0].status, pause)
        time.sleep(pause)
        actions = [outcome.action for outcome in later]
