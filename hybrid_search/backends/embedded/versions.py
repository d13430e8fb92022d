"""The folders of an index: one for each version, with tantivy's files and those of codes in it."""

from __future__ import annotations

import json
import logging
import os
import re
from pathlib import Path
from typing import Any

import tantivy

from hybrid_search.backends.crc import crc32
from hybrid_search.backends.embedded import codes_folder, head, record
from hybrid_search.backends.embedded.head import Head
from hybrid_search.backends.embedded.record_reader import META
from hybrid_search.backends.embedded.writer_lock import WriterLock
from hybrid_search.private_files import create_file, create_folder, read_plain_file

_log = logging.getLogger(__name__)

RECORDS, CODES = "records", "codes"
"""The folders of a version of an index: tantivy's, and that of the files of codes."""

FIELDS = "fields.json"
"""Notes the types of all fields: tantivy itself knows only those that documents have by now."""

UNFINISHED = "note.tmp"

LARGEST_NOTE = 1 << 26

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


def write_note(version: Path, name: str, value: Any) -> None:
    """Write a JSON value with a checksum into the folder of a version, in place of the last."""
    text = json.dumps(value)
    with os.fdopen(create_file(version / UNFINISHED), "wb") as file:
        file.write(json.dumps({"note": text, "crc32": crc32(text.encode())}).encode())
    (version / UNFINISHED).replace(version / name)


def read_note(version: Path, name: str) -> Any:
    """Return what `write_note` wrote, None if that cannot be read."""
    try:
        stored = json.loads(read_plain_file(version / name, LARGEST_NOTE))
        is_sound = crc32(stored["note"].encode()) == stored["crc32"]
        return json.loads(stored["note"]) if is_sound else None
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def identify_file(path: Path) -> tuple[int, ...]:
    """Return what changes with the content of a file; FileNotFoundError is raised without one."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def list_versions(folder: Path) -> list[Path]:
    """Return the folders of all versions of the index in `folder`."""
    paths = sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []
    return [path for path in paths if path.name.isdigit() and path.is_dir()]


def sweep_versions(folder: Path, current: Head) -> None:
    """Remove all versions but the current one."""
    for version in list_versions(folder):
        if version != current.version_folder(folder):
            remove_version(version)


def remove_version(version: Path) -> None:
    """Remove the files of a version of an index; what others put there stays."""
    for path in codes_folder.list_own(version / CODES):
        path.unlink(missing_ok=True)
    records = version / RECORDS
    for path in sorted(records.iterdir()) if records.is_dir() else ():
        if RECORD_NAMES.fullmatch(path.name) and not path.is_dir():
            path.unlink(missing_ok=True)
    for path in (version / name for name in (FIELDS, UNFINISHED)):
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
    for folder in (version / CODES, records, version):
        _remove_if_empty(folder)


def remove_index(folder: Path, lock: WriterLock) -> None:
    """Remove all files of an index, and release its lock; what others put there stays."""
    if not folder.is_symlink():
        (folder / head.NAME).unlink(missing_ok=True)
        (folder / head.UNFINISHED).unlink(missing_ok=True)
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
    names = sorted(path.name for path in folder.iterdir())
    if names:
        return f"{folder} has {len(names)} files that are not the index's ({names[0]!r})"
    folder.rmdir()
    return None
