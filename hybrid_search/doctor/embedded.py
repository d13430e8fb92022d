"""The folder of embedded indexes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from hybrid_search.doctor.check import Check, ok, problem, warning
from hybrid_search.doctor.machine import LITTLE, NO_ROOM, written


def checks(rest: str) -> Iterator[Check]:
    """Whether it can be written, and how much is free there."""
    folder = Path(rest).expanduser()
    try:
        found = written(folder)
    except OSError as error:
        yield problem("store", f"{folder}: {error.strerror}", "let this user write there, or name another folder: --url embedded:PATH")
        return
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    free = shutil.disk_usage(there).free
    if free < NO_ROOM:
        yield problem("store", found, "free space: an ingest stops where the disk is full, and goes on with the same command")
    elif free < LITTLE:
        yield warning("store", found, "free space: 1,000 words take about half a megabyte")
    else:
        yield ok("store", found)
