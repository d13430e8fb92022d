"""Check the folder of embedded indexes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from hybrid_search.maintenance.doctor.check import Check, ok, problem, warning
from hybrid_search.maintenance.doctor.machine import LOW_SPACE, MINIMUM_SPACE, check_writable


def checks(path: str) -> Iterator[Check]:
    """Check that the folder can be written, and how much space is free."""
    folder = Path(path).expanduser()
    try:
        finding = check_writable(folder)
    except OSError as error:
        yield problem(
            "store",
            f"{folder}: {error.strerror}",
            "let this user write there, or use another folder: --url embedded:PATH",
        )
        return
    existing_folder = next(
        parent for parent in (folder, *folder.absolute().parents) if parent.exists()
    )
    free = shutil.disk_usage(existing_folder).free
    if free < MINIMUM_SPACE:
        yield problem(
            "store",
            finding,
            "free some space: an ingest stops when the disk is full; the same command resumes it",
        )
    elif free < LOW_SPACE:
        yield warning("store", finding, "free some space: 1,000 words take about 0.25 MB")
    else:
        yield ok("store", finding)
