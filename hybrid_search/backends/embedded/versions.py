"""The folders of an index: one for each version, with tantivy's files and those of codes in it."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import tantivy

from hybrid_search.backends.embedded import codes_folder, head, record
from hybrid_search.backends.embedded.codes_folder import list_folder
from hybrid_search.backends.embedded.head import Head
from hybrid_search.backends.embedded.record_reader import META
from hybrid_search.backends.embedded.writer_lock import WriterLock
from hybrid_search.private_files import create_folder

_log = logging.getLogger(__name__)

RECORDS, CODES = "records", "codes"
"""The folders of a version of an index: tantivy's, and that of the files of codes."""

FIELDS = "fields.json"
"""Notes the types of all fields: tantivy itself knows only those that documents have by now."""

RECORD_NAMES = re.compile(
    r"[0-9a-f]{32}\.[\w.]+|meta\.json|\.managed\.json|\.tantivy-\w+\.lock|\.tmp\w+"
)
"""The names of tantivy's files."""


def create_version(folder: Path, current: Head) -> None:
    """Make the folders of a new version of the index in `folder`, without a passage."""
    version = current.version_folder(folder)
    for path in (version, version / RECORDS, version / CODES):
        create_folder(path)
    if not (version / RECORDS / META).exists():
        tantivy.Index(record.build_schema(), str(version / RECORDS))


def read_noted_fields(version: Path) -> dict[str, str]:
    """Return the fields that are noted in the folder of a version, none if they cannot be read."""
    try:
        return dict(head.read_checked(version / FIELDS))
    except (OSError, *head.MALFORMED):
        return {}


def identify_file(path: Path) -> tuple[int, ...]:
    """Return what changes with the content of a file; FileNotFoundError is raised without one."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def list_versions(folder: Path) -> list[Path]:
    """Return the folders of all versions of the index in `folder`."""
    paths = [] if folder.is_symlink() else list_folder(folder)
    return [path for path in paths if path.name.isdigit() and path.is_dir()]


def sweep_versions(folder: Path, current: Head) -> None:
    """Remove all versions but the current one."""
    for version in list_versions(folder):
        if version != current.version_folder(folder):
            remove_version(version)


def remove_version(version: Path) -> None:
    """Remove the files of a version of an index; what others put there stays."""
    codes, records = version / CODES, version / RECORDS
    own_records = [path for path in list_folder(records) if RECORD_NAMES.fullmatch(path.name)]
    notes = [version / FIELDS, version / f"{FIELDS}.new"]
    for path in [*codes_folder.list_own(codes), *own_records, *notes]:
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
    for folder in (codes, records, version):
        _remove_if_empty(folder)


def remove_index(folder: Path, lock: WriterLock) -> None:
    """Remove all files of an index, and release its lock; what others put there stays."""
    if not folder.is_symlink():
        (folder / head.NAME).unlink(missing_ok=True)
        (folder / f"{head.NAME}.new").unlink(missing_ok=True)
    for version in list_versions(folder):
        remove_version(version)
    left = _remove_if_empty(folder)
    lock.remove()
    if left:
        _log.warning("index %r is deleted, but %s, and was left as it is", folder.stem, left)


def _remove_if_empty(folder: Path) -> str | None:
    """Remove a folder if nothing is in it; return what is left of it, if anything is."""
    if not folder.is_dir():
        return None
    if folder.is_symlink():
        return f"{folder} is a link that somebody else made"
    paths = list_folder(folder)
    if paths:
        return f"{folder} has {len(paths)} files that are not the index's ({paths[0].name!r})"
    folder.rmdir()
    return None
