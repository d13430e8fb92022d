"""Mine only documents that were written since an earlier run, or since a time.

A server has the time at which each document was written. An embedded index has none, but numbers
its passages in the order of writing, so that a run can go on where an earlier one ended. Beside the
file of matches a run leaves a mark, ``matches.jsonl.position``: which index it was, how often that
had been committed, and the last passage.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Position
from hybrid_search.errors import UsageError
from hybrid_search.file_errors import explain_failure
from hybrid_search.private_files import replace_file


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


Start = tuple[Position, datetime | None]
"""Which documents a run leaves out: those up to a position, or from before a time."""


def find_start(since: str | None, mark: RunMark | None, index: str) -> Start:
    """Return where a run starts.

    Args:
        since: The file of an earlier run, or a time in ISO 8601; None for all documents.
        mark: That of this run, which begins; None if the store knows times, and no positions.
        index: The index.

    Raises:
        UsageError: If the store cannot tell what was written since.
    """
    if since is None:
        return None, None
    time = None if Path(since).exists() else parse_time(since)
    if mark and time:
        raise UsageError(
            f"--since {since} is a time, and only a server knows when documents were written: "
            "give the --out of an earlier run on this index"
        )
    if mark:
        return _read_position(Path(since), mark, index), None
    if time is None:
        raise UsageError(
            f"--since {since} is not a time in ISO 8601, by which a server finds which documents "
            "are new: give the time at which the earlier run began, as 2026-01-31T09:00"
        )
    return None, time


def parse_time(text: str) -> datetime | None:
    """Return a date or a time in ISO 8601, in UTC if it has no offset; None for anything else."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def mark_path(matches_file: Path) -> Path:
    """Return where the mark of a file of matches lies."""
    return matches_file.with_name(f"{matches_file.name}.position")


def begin_mark(backend: Backend, index: str, topics: str) -> RunMark | None:
    """Return the mark of a run that begins now; None if the store knows no order of writing."""
    counted = backend.count_commits(index)
    return RunMark(*counted, topics, None) if counted else None


def write_mark(matches_file: Path, mark: RunMark) -> None:
    """Write the mark of a complete run in place of an earlier one; UsageError if that fails."""
    path = mark_path(matches_file)
    with explain_failure(f"{path} cannot be written", "free space"):
        replace_file(path, json.dumps(asdict(mark)).encode() + b"\n")


def _read_position(matches_file: Path, mark: RunMark, index: str) -> Position:
    """Return the position behind which documents are new since the run that wrote a file."""
    earlier = _read_mark(mark_path(matches_file))
    is_older = mark.commits < earlier.commits
    if mark.index_identity != earlier.index_identity or is_older:
        difference = "an older copy of the index" if is_older else "another index"
        raise UsageError(
            f"index {index!r} is {difference} than the one that {matches_file} was mined from: "
            "mine all without --since"
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
        raise UsageError(
            f"{path} does not tell of which run it is: mine all without --since"
        ) from error
    return mark
