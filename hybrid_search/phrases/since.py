"""Go on where an earlier, complete run ended: only documents that were written since are mined.

Beside the file of matches the run leaves a mark, ``matches.jsonl.position``: which index it was,
how often that had been committed, and the last passage. Only a store that numbers its passages in
the order of writing can tell what is behind that, which is the embedded one.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from io import FileIO
from pathlib import Path

from hybrid_search.backends.base import Backend, WriteOrderBackend
from hybrid_search.backends.types import Position
from hybrid_search.errors import UsageError
from hybrid_search.ingest.rejects import flush_to_disk, write_all
from hybrid_search.private_files import create_file


@dataclass(frozen=True, slots=True)
class RunMark:
    """Where a complete run ended.

    Attributes:
        index_identity: Tells the index from another one that had its name.
        commits: How often the index had been committed when the run began.
        topics: Digest of the topics, their tuning, the model and the shard.
        position: That of the last passage; None for an index without passages.
    """

    index_identity: str
    commits: int
    topics: str
    position: Position


def mark_path(matches_file: Path) -> Path:
    """Return where the mark of a file of matches lies."""
    return matches_file.with_name(f"{matches_file.name}.position")


def begin_mark(backend: Backend, index: str, topics: str) -> RunMark | None:
    """Return the mark of a run that begins now; None if the store knows no order of writing.

    An index that an earlier version wrote has no identity until something is written into it.
    """
    if not isinstance(backend, WriteOrderBackend):
        return None
    identity, commits = backend.count_commits(index)
    return RunMark(identity, commits, topics, None) if identity else None


def write_mark(matches_file: Path, mark: RunMark) -> None:
    """Write the mark of a run that is complete, in place of an earlier one.

    Raises:
        UsageError: If it cannot be written.
    """
    path = mark_path(matches_file)
    unfinished = path.with_name(f"{path.name}.new")
    try:
        with FileIO(create_file(unfinished), "wb") as file:
            write_all(file, json.dumps(asdict(mark)).encode() + b"\n")
            flush_to_disk(file)
        unfinished.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror}): free space") from error


def read_position(matches_file: Path, mark: RunMark | None, index: str) -> Position:
    """Return the position behind which documents are new since an earlier run.

    Args:
        matches_file: The file of matches that the earlier run wrote.
        mark: That of this run, which begins.
        index: The index.

    Raises:
        UsageError: If that cannot be told: the store knows no order of writing, there is no mark,
            or the index or the topics are others.
    """
    if mark is None:
        raise UsageError(
            f"only an embedded index can tell which documents were written since {matches_file}: "
            "mine all without --since, or choose by metadata with the topics' where"
        )
    earlier = _read_mark(mark_path(matches_file))
    is_older = mark.commits < earlier.commits
    if mark.index_identity != earlier.index_identity or is_older:
        difference = "an older copy of the index" if is_older else "another index"
        raise UsageError(
            f"index {index!r} is {difference} than the one that {matches_file} is of: mine all "
            "without --since"
        )
    if mark.topics != earlier.topics:
        raise UsageError(
            f"the topics, their tuning, the model or the shard are not those of {matches_file}: "
            "mine all without --since"
        )
    return earlier.position


def _read_mark(path: Path) -> RunMark:
    try:
        mark = RunMark(**json.loads(path.read_bytes()))
        if not isinstance(mark.commits, int):
            raise TypeError("commits is no number")
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no {path}: --since takes the --out of a complete run on an embedded index "
            "with documents"
        ) from error
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{path} is not the mark of a run: mine all without --since") from error
    return mark
