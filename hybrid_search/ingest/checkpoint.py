"""``--checkpoint FILE``: how many lines of each file are done, so that the same command after a
kill begins behind them.

A line is done when its document is committed, unchanged or in the rejects file; the note is made
after that, so it may lag and never leads. It holds while the file is the same, the rejects are
those that were written, and the index has the last document that was committed, in that very
version: an index that was dropped, restored or written by another model is ingested from the
beginning.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hybrid_search.errors import IndexStoreError, UsageError
from hybrid_search.ingest.rejects import Rejects, flush_to_disk
from hybrid_search.ingest.types import SourceLine

SECONDS = 1.0
"""Between two notes, at least: each waits for the disk."""

HEAD_BYTES = 4096

SourceHashLookup = Callable[[Sequence[str]], dict[str, str]]


class Checkpoint:
    """The note in `file` of a run of `sources` into `place`: whatever names the index; a note of
    another place does not hold.

    To be made before the sources are opened: files that are replaced later are then others. Raises
    UsageError where `file` is something else.
    """

    def __init__(self, file: Path, place: str, sources: Sequence[str]) -> None:
        self.file, self._place = file, place
        self._saved = _read(file)
        self._identities = {
            source: identity for source in sources if (identity := file_identity(Path(source)))
        }
        self._last_committed: tuple[str, str] | None = None
        self._written_at = 0.0
        self.resumed_lines = 0
        """Lines that were done before this run."""

    def iterate_remaining(
        self, lines: Iterable[SourceLine], look_up_hashes: SourceHashLookup, rejects: Rejects
    ) -> Iterator[SourceLine]:
        """The lines that are not done. `rejects` goes on with those of the lines that are."""
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
        """All lines up to `line` are done, if `whole`; `committed` are id and source hash of the
        documents that are whole with it, in order.
        """
        self._last_committed = committed[-1] if committed else self._last_committed
        if not complete or line.source not in self._identities:
            return
        self._identities[line.source]["lines"] = line.number
        if self._last_committed and time.monotonic() - self._written_at >= SECONDS:
            self._write(
                {
                    "place": self._place,
                    "last": self._last_committed,
                    "rejects": rejects.state(),
                    "sources": self._identities,
                }
            )
            self._written_at = time.monotonic()

    def finish(self) -> None:
        """Forget it: all is done, and a further run looks at every document again."""
        self.file.unlink(missing_ok=True)

    def _count_done_lines(self, look_up_hashes: SourceHashLookup) -> dict[str, int]:
        """How many lines are done of each source that is what it was."""
        document_id, source_hash = self._saved.get("last", ("", ""))
        if (
            self._saved.get("place") != self._place
            or look_up_hashes([document_id]).get(document_id) != source_hash
        ):
            return {}
        saved_sources = self._saved["sources"].items()
        return {
            source: saved["lines"]
            for source, saved in saved_sources
            if "lines" in saved
            and saved == {**self._identities.get(source, {}), "lines": saved["lines"]}
        }

    def _write(self, state: dict[str, Any]) -> None:
        temporary = self.file.with_name(f"{self.file.name}.new")
        try:
            with temporary.open("w", encoding="utf-8") as file:
                json.dump(state, file)
                flush_to_disk(file)
            temporary.replace(self.file)
        except OSError as error:
            raise IndexStoreError(
                f"the checkpoint cannot be written to {self.file} ({error.strerror}). What was committed is safe: free space, or name another "
                "file with --checkpoint, and run the same command again"
            ) from error


def _read(file: Path) -> dict[str, Any]:
    """What is noted; nothing where there is no file yet."""
    if not file.exists():
        return {}
    try:
        state = json.loads(file.read_bytes())
        (_, _), (_, _), _, _ = (
            state["last"],
            state["rejects"],
            state["sources"].items(),
            state["place"],
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(f"{file} is no checkpoint: name another file with --checkpoint") from error
    return dict(state)


def file_identity(path: Path) -> dict[str, Any]:
    """What tells whether a file is the one that it was; nothing for what is no file, of which no
    line is ever passed over.
    """
    if not path.is_file():
        return {}
    stat = path.stat()
    with path.open("rb") as file:
        digest = hashlib.sha256(file.read(HEAD_BYTES)).hexdigest()
    return {
        "size": stat.st_size,
        "modified": stat.st_mtime_ns,
        "inode": stat.st_ino,
        "head": digest,
    }
