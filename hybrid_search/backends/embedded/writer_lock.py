"""The lock of the writer of an index."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from hybrid_search import private_files, system
from hybrid_search.errors import IndexBusyError, IndexStoreError


class WriterLock:
    """Ensures that an index has one writer: the system's lock on a file, gone with its process.

    Raises:
        IndexBusyError: If another process has the lock.
        IndexStoreError: If something that is not a file is in the lock's place.
    """

    def __init__(self, path: Path, index: str) -> None:
        self._path = path
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise IndexStoreError(
                f"{path}, the lock of index {index!r}, is not a plain file: remove it, "
                "and run the same command again. The index is not damaged"
            )
        self._descriptor = self._acquire(index)

    def _acquire(self, index: str) -> int:
        while True:
            descriptor = private_files.open_lock_file(self._path)
            try:
                system.lock_exclusively(descriptor, wait=False)
                with suppress(FileNotFoundError):  # the index was dropped, with its lock, meanwhile
                    if os.path.samestat(os.fstat(descriptor), self._path.stat()):
                        return descriptor
            except OSError as error:
                os.close(descriptor)
                if error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                    raise
                raise IndexBusyError(
                    f"index {index!r} is being written by another process: "
                    "wait for it to end, or use another index name"
                ) from error
            os.close(descriptor)

    def remove(self) -> None:
        """Remove the lock of an index that is no more, and release it."""
        with suppress(PermissionError):  # Windows removes no open file, and an empty one can stay
            self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Let the next writer in."""
        os.close(self._descriptor)
