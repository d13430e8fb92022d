"""Facts about this machine and its files that several packages need, and locks on files."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path

DISTRIBUTION = "hybrid-span-search"
"""What pip calls this project. The package called hybrid-search on PyPI is a stranger's."""

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
"""Flag that refuses to open a symbolic link; Windows has none."""

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
"""Modes of a file and a folder that only this user may read and write."""


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


def create_private_file(path: Path) -> None:
    """Create an empty file that only this user may read, unless there is something at `path`."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE))


def open_lock_file(path: Path) -> int:
    """Return a descriptor of a file that serves as a lock; what the file holds does not matter.

    A new file is readable by this user only, and a symbolic link is never followed.
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, PRIVATE_FILE)


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
