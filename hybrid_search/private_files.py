"""Create files and folders that only their owner may read, and never through a symbolic link.

What they hold comes from private documents, and they may lie where others can write: a link that
somebody put there would lead the writing to another file.
"""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO
from pathlib import Path

FILE_MODE, FOLDER_MODE = 0o600, 0o700

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


def create_file(path: Path) -> int:
    """Create `path` anew for writing.

    A regular file of this name is removed first, so that nobody keeps the access that they had to
    it. A device, such as /dev/null, is only opened.

    Returns:
        The file's descriptor.

    Raises:
        OSError: If it is a symbolic link, or cannot be created.
    """
    if path.is_symlink():
        raise OSError(errno.ELOOP, f"{path} is a symbolic link, and may lead elsewhere: remove it")
    if path.is_file():
        path.unlink()
    exclusive = 0 if path.exists() else os.O_EXCL
    return _open(path, os.O_WRONLY | os.O_CREAT | exclusive)


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path` in place of an earlier file, and wait for the disk.

    A kill or a full disk leaves the earlier file as it was; the latter is an OSError.
    """
    unfinished = path.with_name(f"{path.name}.new")
    with FileIO(create_file(unfinished), "wb") as file:
        write_all(file, data)
        flush_to_disk(file)
    unfinished.replace(path)


def append_to_file(path: Path) -> int:
    """Open the file `path` for appending, and return its descriptor; a symbolic link fails."""
    return _open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def write_all(file: FileIO, data: bytes) -> None:
    """Write all of `data`: an unbuffered file may write only a part, e.g. on a full disk."""
    unwritten = memoryview(data)
    while unwritten:
        unwritten = unwritten[file.write(unwritten) :]


def flush_to_disk(file: FileIO) -> None:
    """Wait until what was written to `file` is on the disk."""
    os.fsync(file.fileno())


def open_lock_file(path: Path) -> int:
    """Return a descriptor of a file that serves as a lock; what the file holds does not matter.

    OSError is raised if it is a symbolic link or a folder, or cannot be created.
    """
    return _open(path, os.O_RDWR | os.O_CREAT)


def read_plain_file(path: Path, size: int) -> bytes:
    """Return the first `size` bytes of a plain file; a link, a pipe or a folder is an OSError."""
    flags = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, f"{path} is no plain file")
        return file.read(size)


def create_folder(path: Path) -> None:
    """Create the folder `path`, unless it exists.

    Raises:
        OSError: If it is a symbolic link or no folder, or cannot be created.
    """
    path.mkdir(FOLDER_MODE, exist_ok=True)
    if path.is_symlink():
        raise OSError(errno.ELOOP, f"{path} is a symbolic link, and may lead elsewhere: remove it")


def _open(path: Path, flags: int) -> int:
    return os.open(path, flags | _NO_FOLLOW, FILE_MODE)
