"""Checks the files of an index as a whole: tantivy's by their checksums, and those of codes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hybrid_search.backends.embedded import head
from hybrid_search.backends.embedded.record_reader import (
    DamagedRecordsError,
    RecordReader,
    check_files,
    read_meta,
)
from hybrid_search.backends.embedded.versions import RECORDS
from hybrid_search.backends.types import Fault
from hybrid_search.errors import HybridSearchError


def find_file_faults(folder: Path, *, full: bool) -> list[Fault]:
    """Return what is wrong with tantivy's files; with `full` all are read, though they were before.

    What is wrong with files of codes is told of each passage.
    """
    current = head.read_head(folder)
    if current is None:
        return []
    records = current.version_folder(folder) / RECORDS
    return list(_find_faults(records, full=full))


def _find_faults(records: Path, *, full: bool) -> Iterator[Fault]:
    try:
        check_files(records, read_meta(records), again=full)
        reader = RecordReader(records)
        if len(reader.list_passages()[0]) != len(reader):
            yield Fault("file", "its list of passages is not the one that was written")
    except HybridSearchError:
        raise
    except (DamagedRecordsError, ValueError) as error:
        yield Fault("file", f"it cannot be read ({error})")
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        yield Fault("file", "it cannot be read")
