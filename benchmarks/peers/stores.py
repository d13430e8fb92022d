"""Bytes that the index of a peer takes, and the CPU time of it and of its server."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from typing import Any


def count_folder(folder: Path) -> int:
    """Return the bytes of all files below `folder`."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def count_indexes(url: str, index: str) -> int:
    """Return the bytes of a server's indexes whose names begin with `index`, as it counts them.

    They are refreshed and flushed first. Its log of recent writes is not counted.
    """
    for step in ("_refresh", "_flush"):
        _request(f"{url}/{index}*/{step}", "POST")
    answer = _request(f"{url}/{index}*/_stats/store", "GET")
    return int(answer["_all"]["primaries"]["store"]["size_in_bytes"])


def remove_indexes(url: str, index: str) -> None:
    """Remove a server's indexes whose names begin with `index`."""
    for name in _request(f"{url}/{index}*", "GET"):
        _request(f"{url}/{name}", "DELETE")


def read_cpu_seconds(url: str | None) -> float:
    """Return the CPU time that this process and the server, if there is one, have had."""
    if url is None:
        return time.process_time()
    nodes = _request(f"{url}/_nodes/stats/process", "GET")["nodes"].values()
    milliseconds: int = sum(node["process"]["cpu"]["total_in_millis"] for node in nodes)
    return time.process_time() + milliseconds / 1000


def _request(url: str, method: str) -> Any:
    request = urllib.request.Request(url, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
        return json.load(response)
