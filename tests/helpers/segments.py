"""Let a writer bring the segments of an index up to date."""

from __future__ import annotations

from pathlib import Path

from hybrid_search import connect


def grow_segments(folder: Path) -> None:
    """Open the index "calls" for writing, write nothing, and close it."""
    with connect(f"embedded:{folder}") as client:
        client.delete([])
