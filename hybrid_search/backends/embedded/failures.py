"""Errors of tantivy and of the file system, as ours: with the file and the remedy."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hybrid_search.backends.embedded.sealed_file import DamagedFileError
from hybrid_search.errors import (
    DamagedIndexError,
    HybridSearchError,
    IndexBusyError,
    IndexStoreError,
)

_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FULL_DISK_WORDS = ("StorageFull", "No space left", "FileTooLarge", "QuotaEx")


def describe_damage(path: Path, why: str) -> str:
    """Return the message about a damaged index, which only its source can make again."""
    return (
        f"{path} is damaged ({why}): restore it from a backup, or ingest again after "
        f"hybrid-search delete --index {path.stem} --yes"
    )


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise errors of files, of tantivy and of the system about the index at `path` as ours.

    They become an IndexStoreError if the disk is full or fails, or a file is not accessible, an
    IndexBusyError if another process writes the index, and else a DamagedIndexError.
    """
    try:
        yield
    except BaseException as error:
        ours = _translate(path, error)
        if ours is None:
            raise
        raise ours from error


def _translate(path: Path, error: BaseException) -> HybridSearchError | None:
    """Return our error for one of files, of tantivy or of the system, None for any other."""
    if isinstance(error, DamagedFileError):
        return DamagedIndexError(describe_damage(path, str(error)))
    if type(error).__name__ == "PanicException":  # of tantivy; it is no Exception
        return DamagedIndexError(describe_damage(path, "it cannot be read"))
    if isinstance(error, HybridSearchError) or not isinstance(error, OSError | ValueError):
        return None
    number, words = getattr(error, "errno", None), str(error)
    if number in _FULL_DISK or any(sign in words for sign in _FULL_DISK_WORDS):
        return IndexStoreError(
            f"the disk is full at {path}: what was committed is safe. "
            "Free space and run the same command again."
        )
    if number == errno.EIO or "Input/output error" in words:
        return IndexStoreError(
            f"{path}: Input/output error. What was committed is safe: "
            "check the disk and run the same command again."
        )
    if isinstance(error, OSError):
        return IndexStoreError(
            f"{error.filename or path}: {error.strerror}: "
            "use another folder, or let this user write there"
        )
    return _translate_words(path, words)


def _translate_words(path: Path, words: str) -> HybridSearchError:
    """Return our error for an error of tantivy."""
    if "LockBusy" in words:
        return IndexBusyError(
            f"index {path.stem!r} is being written by another process: "
            "wait for it to end, or use another index name"
        )
    if "PermissionDenied" in words or "ReadOnlyFilesystem" in words:
        return IndexStoreError(
            f"{path} cannot be written ({words.splitlines()[0]}): let this user write in it, or "
            "use another folder"
        )
    return DamagedIndexError(describe_damage(path, words.splitlines()[0] if words else "tantivy"))
