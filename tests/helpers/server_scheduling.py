"""Which worker of pytest-xdist runs a test where servers are named: each server has its own."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

from tests.helpers.live_servers import LABELS


class ServerScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives all tests of a server to one worker, since a test removes all indexes that appear.

    Tests that name no server are run by the worker of the first one.
    """

    def _split_scope(self, nodeid: str) -> str:
        labels = list(LABELS.values())
        return next((label for label in labels if label in nodeid), labels[0])
