"""Remove what an index on a server still has of deleted and replaced documents, and wait for it.

A server keeps a deleted document in its segment, and the operations since the last commit in its
translog, until a flush and a merge. The merge runs as a task there, which may take hours.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from hybrid_search.backends.server import aliases, answers
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.server.transport.shape import OBJECT
from hybrid_search.errors import IndexStoreError

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds between two questions whether it is done; they grow."""


def purge(server: Server, name: str, patience: float) -> None:
    """Flush an index and merge each shard into one segment, until nothing deleted is left.

    Raises:
        IndexStoreError: If something is still left after `patience` seconds.
    """
    _flush(server, name)
    deadline = time.monotonic() + patience
    written = {shard: copy["seq_no"]["max_seq_no"] for shard, copy in _list_copies(server, name)}
    for pause in _draw_pauses(deadline):
        if not _is_retained(server, name, written):
            break
        time.sleep(pause)
    for pause in _draw_pauses(deadline):
        _merge(server, name)
        _flush(server, name)
        aliases.refresh(server, name)  # searches let go of the segments of before
        if not list_remains(server, name):
            return
        time.sleep(pause)
    raise IndexStoreError(
        f"after {patience:.0f} s {', '.join(list_remains(server, name))}: is a copy of a shard "
        "away, or does somebody write? Run the same command again"
    )


def _draw_pauses(deadline: float) -> Iterator[float]:
    """Yield the seconds before each next question, one at least, until it is too late for one."""
    pause = FIRST_PAUSE
    yield pause
    while time.monotonic() < deadline:
        pause = min(2 * pause, LONGEST_PAUSE)
        yield pause


def _is_retained(server: Server, name: str, written: Mapping[str, int]) -> bool:
    """Return whether deleted documents are kept for a copy of a shard, which may need them.

    A merge would keep them, too. Leases end about half a minute after the last write.
    """
    return any(
        lease["retaining_seq_no"] <= written.get(shard, -1)
        for shard, copy in _list_copies(server, name)
        for lease in copy["retention_leases"]["leases"]
    )


def _list_copies(server: Server, name: str) -> Iterator[tuple[str, answers.Answer]]:
    """Yield each copy of each shard that is there, with the number of the shard."""
    path, params = f"/{quote(name)}/_stats/docs", {"level": "shards"}
    stats = server.request("GET", path, params=params, read=answers.COPIES.read)
    for own in stats["indices"].values():
        for shard, copies in own["shards"].items():
            yield from ((shard, copy) for copy in copies)


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
    for pause in _draw_pauses(math.inf):
        state = server.request("GET", f"/_tasks/{quote(task)}", read=answers.PROGRESS.read)
        if state["completed"]:
            return
        time.sleep(pause)
