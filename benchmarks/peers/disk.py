"""Bytes that the index of a peer takes."""

from __future__ import annotations

import json
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


def _request(url: str, method: str) -> Any:
    request = urllib.request.Request(url, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
        return json.load(response)
