"""``--checkpoint FILE``: how many lines of each file are done, to resume a killed ingest.

A line is done when its document is committed, unchanged or in the rejects file. It is recorded
after that, so the checkpoint is never ahead of the index. It is valid while the file is unchanged,
the rejects file is the one that the run wrote, and the index has the last committed document in the
same version; otherwise ingestion starts from the beginning.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hybrid_search.errors import UsageError
from hybrid_search.ingest.rejects import Rejects, translate_write_errors
from hybrid_search.ingest.types import SourceLine
from hybrid_search.private_files import replace_file

SECONDS = 1.0
"""Minimum time between two writes of the checkpoint, since each waits for the disk."""

HEAD_BYTES = 4096
"""Bytes at the start of a file that are hashed to recognize it."""

WORDS = "the checkpoint", "--checkpoint"
"""How errors of writing call the file, and the option that names it."""

SourceHashLookup = Callable[[Sequence[str]], dict[str, str]]
"""Returns the source hashes of those of the given ids whose documents are fully indexed."""


class Checkpoint:
    """The checkpoint in `file` of a run of `sources` into `place`.

    `place` is any text that identifies the index and the selected documents; a checkpoint of
    another place is not valid. Create the checkpoint before the sources are opened, so that a file
    replaced later is recognized as a different file.

    Raises:
        UsageError: If `file` is not a checkpoint.
    """

    def __init__(self, file: Path, place: str, sources: Sequence[str]) -> None:
        self.file, self._place = file, place
        self._saved = _read(file)
        identities = {source: _identify(Path(source)) for source in sources}
        self._identities = {source: identity for source, identity in identities.items() if identity}
        self._last_committed: tuple[str, str] | None = None
        self._written_at = 0.0
        self.resumed_lines = 0
        """Lines that were done before this run."""

    def iterate_remaining(
        self, lines: Iterable[SourceLine], look_up_hashes: SourceHashLookup, rejects: Rejects
    ) -> Iterator[SourceLine]:
        """Yield the lines that are not done; `rejects` keeps the lines refused earlier."""
        done_lines = self._count_done_lines(look_up_hashes)
        size, digest = self._saved.get("rejects", (0, ""))
        if done_lines and rejects.carry(
            size, digest, lambda source, number: number <= done_lines.get(source, 0)
        ):
            self._last_committed = self._saved["last"]
            for source, number in done_lines.items():
                self._identities[source]["lines"] = number
        else:
            done_lines = {}
        for line in lines:
            if line.number > done_lines.get(line.source, 0):
                yield line
            else:
                self.resumed_lines += 1

    def note(
        self,
        line: SourceLine,
        committed: Sequence[tuple[str, str]],
        *,
        complete: bool,
        rejects: Rejects,
    ) -> None:
        """Record that all lines up to `line` are done, and the ids and hashes of `committed`."""
        self._last_committed = committed[-1] if committed else self._last_committed
        if not complete or line.source not in self._identities:
            return
        self._identities[line.source]["lines"] = line.number
        if self._last_committed and time.monotonic() - self._written_at >= SECONDS:
            state = {
                "place": self._place,
                "last": self._last_committed,
                "rejects": rejects.state(),
                "sources": self._identities,
            }
            with translate_write_errors(self.file, *WORDS):
                replace_file(self.file, json.dumps(state).encode())
            self._written_at = time.monotonic()

    def finish(self) -> None:
        """Remove the file: all lines are done, and another run looks at every document again."""
        with translate_write_errors(self.file, *WORDS):
            self.file.unlink(missing_ok=True)

    def _count_done_lines(self, look_up_hashes: SourceHashLookup) -> dict[str, int]:
        """Return how many lines are done in each unchanged source."""
        if self._saved.get("place") != self._place:
            return {}
        document_id, source_hash = self._saved["last"]
        if look_up_hashes([document_id]).get(document_id) != source_hash:
            return {}
        done_lines = {}
        for source, saved in self._saved["sources"].items():
            number = saved.get("lines", 0)
            if number and saved == {**self._identities.get(source, {}), "lines": number}:
                done_lines[source] = number
        return done_lines


def _read(file: Path) -> dict[str, Any]:
    """Return the content of the checkpoint, an empty dict if there is no file yet."""
    if not file.exists():
        return {}
    try:
        state = dict(json.loads(file.read_bytes()))
        (_, _), (_, _) = state["last"], state["rejects"]
        _, _ = state["sources"].items(), state["place"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{file} is not a checkpoint: name another file with --checkpoint"
        ) from error
    return state


def _identify(path: Path) -> dict[str, Any]:
    """Return what tells a regular file from a later one; {} for others, so no line is skipped."""
    if not path.is_file():
        return {}
    try:
        stat = path.stat()
        with path.open("rb") as file:
            head = hashlib.sha256(file.read(HEAD_BYTES)).hexdigest()
    except OSError:  # reading the source will report the error
        return {}
    return {
        "size": stat.st_size,
        "modified": stat.st_mtime_ns,
        "inode": stat.st_ino,
        "head": head,
    }
