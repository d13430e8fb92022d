"""Facts about this machine and its files that several packages need, and locks on files."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

DISTRIBUTION = "hybrid-span-search"
"""What pip calls this project. The package called hybrid-search on PyPI is a stranger's."""


def available_cores() -> int:
    """Return the cores this process may use; a container often has fewer than the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def install_command(*extras: str) -> str:
    """Return the command that installs this project with `extras`, for messages."""
    requirement = f"'{DISTRIBUTION}[{','.join(extras)}]'" if extras else DISTRIBUTION
    return f"pip install {requirement}"


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal, read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if sys.platform == "win32":
    import msvcrt

    def lock_exclusively(descriptor: int, *, wait: bool) -> None:
        """Lock an open file; raise OSError if it cannot be, or is locked and `wait` is False."""
        msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def lock_exclusively(descriptor: int, *, wait: bool) -> None:
        """Lock an open file; raise OSError if it cannot be, or is locked and `wait` is False."""
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
