"""Remove what an index on a server still has of deleted and replaced documents, and wait for it.

A server keeps a deleted document in its segment, and the operations since the last commit in its
translog, until a flush and a merge. The merge runs as a task there, which may take hours.
"""

from __future__ import annotations

import time
from urllib.parse import quote

from hybrid_search.backends.server import answers
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.server.transport.shape import OBJECT
from hybrid_search.errors import IndexStoreError

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds between two questions whether it is done; they grow."""


def purge(server: Server, name: str, patience: float) -> None:
    """Flush an index and merge each shard into one segment, until nothing deleted is left.

    A shard keeps deleted documents for a copy of it that lags behind, for a minute or so: this is
    waited for, `patience` seconds.

    Raises:
        IndexStoreError: If something is still left then.
    """
    began, pause = time.monotonic(), FIRST_PAUSE
    while True:
        _flush(server, name)
        _merge(server, name)
        _flush(server, name)
        remains = list_remains(server, name)
        if not remains:
            return
        if time.monotonic() - began > patience:
            raise IndexStoreError(
                f"after {patience:.0f} s {remains[0]}: is a copy of a shard away, or does somebody "
                "write? Run the same command again"
            )
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def list_remains(server: Server, name: str) -> list[str]:
    """Return in words what all copies of the shards still have of deleted documents."""
    path = f"/{quote(name)}/_stats/docs,translog"
    total = server.request("GET", path, read=answers.REMAINS.read)["_all"]["total"]
    deleted, operations = total["docs"]["deleted"], total["translog"]["operations"]
    found = [f"{deleted:,} deleted documents are in segments of {name}"] if deleted else []
    return found + ([f"{operations:,} operations are in its translog"] if operations else [])


def _flush(server: Server, name: str) -> None:
    params = {"force": True, "wait_if_ongoing": True}
    server.request("POST", f"/{quote(name)}/_flush", params=params, read=OBJECT.read)


def _merge(server: Server, name: str) -> None:
    """Merge, and wait for the task: one request would be silent for as long as that takes."""
    params = {"max_num_segments": 1, "wait_for_completion": False}
    path = f"/{quote(name)}/_forcemerge"
    task = server.request("POST", path, params=params, read=answers.TASK.read)["task"]
    pause = FIRST_PAUSE
    while not server.request("GET", f"/_tasks/{quote(task)}", read=answers.PROGRESS.read)[
        "completed"
    ]:
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
