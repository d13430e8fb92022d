"""``--checkpoint FILE``: how many lines of each file are done, so that the same command after a kill begins behind them.

A line is done when its document is committed, unchanged or in the rejects file; the note is made after that, so it may lag and never leads. It
holds while the file is the same, the rejects are those that were written, and the index has the last document that was committed, in that very
version: an index that was dropped, restored or written by another model is ingested from the beginning.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hybrid_search.errors import IndexStoreError, UsageError
from hybrid_search.ingest.rejects import Rejects, settled
from hybrid_search.ingest.sources import Line

SECONDS = 1.0
"""Between two notes, at least: each waits for the disk."""

HEAD_BYTES = 4096

Known = Callable[[Sequence[str]], dict[str, str]]


class Checkpoint:
    """The note in `file` of a run of `sources` into `place`: whatever names the index; a note of another place does not hold.

    To be made before the sources are opened: files that are replaced later are then others. Raises UsageError where `file` is something else."""

    def __init__(self, file: Path, place: str, sources: Sequence[str]) -> None:
        self.file, self._place = file, place
        self._held = _read(file)
        self._heads = {source: found for source in sources if (found := head(Path(source)))}
        self._last: tuple[str, str] | None = None
        self._noted = 0.0
        self.passed = 0
        """Lines that were done before this run."""

    def left(self, lines: Iterable[Line], known: Known, rejects: Rejects) -> Iterator[Line]:
        """The lines that are not done. `rejects` goes on with those of the lines that are."""
        done = self._done(known)
        size, digest = self._held.get("rejects", (0, ""))
        if done and rejects.carry(size, digest, lambda source, number: number <= done.get(source, 0)):
            self._last = self._held["last"]
            for source, number in done.items():
                self._heads[source]["lines"] = number
        else:
            done = {}
        for line in lines:
            if line.number > done.get(line.source, 0):
                yield line
            else:
                self.passed += 1

    def note(self, line: Line, committed: Sequence[tuple[str, str]], *, whole: bool, rejects: Rejects) -> None:
        """All lines up to `line` are done, if `whole`; `committed` are id and source hash of the documents that are whole with it, in order."""
        self._last = committed[-1] if committed else self._last
        if not whole or line.source not in self._heads:
            return
        self._heads[line.source]["lines"] = line.number
        if self._last and time.monotonic() - self._noted >= SECONDS:
            self._write({"place": self._place, "last": self._last, "rejects": rejects.state(), "sources": self._heads})
            self._noted = time.monotonic()

    def finish(self) -> None:
        """Forget it: all is done, and a further run looks at every document again."""
        self.file.unlink(missing_ok=True)

    def _done(self, known: Known) -> dict[str, int]:
        """How many lines are done of each source that is what it was."""
        document_id, source_hash = self._held.get("last", ("", ""))
        if self._held.get("place") != self._place or known([document_id]).get(document_id) != source_hash:
            return {}
        told = self._held["sources"].items()
        return {source: was["lines"] for source, was in told if "lines" in was and was == {**self._heads.get(source, {}), "lines": was["lines"]}}

    def _write(self, held: dict[str, Any]) -> None:
        beside = self.file.with_name(f"{self.file.name}.new")
        try:
            with beside.open("w", encoding="utf-8") as file:
                json.dump(held, file)
                settled(file)
            beside.replace(self.file)
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
        held = json.loads(file.read_bytes())
        (_, _), (_, _), _, _ = held["last"], held["rejects"], held["sources"].items(), held["place"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(f"{file} is no checkpoint: name another file with --checkpoint") from error
    return dict(held)


def head(path: Path) -> dict[str, Any]:
    """What tells whether a file is the one that it was; nothing for what is no file, of which no line is ever passed over."""
    if not path.is_file():
        return {}
    about = path.stat()
    with path.open("rb") as file:
        first = hashlib.sha256(file.read(HEAD_BYTES)).hexdigest()
    return {"size": about.st_size, "modified": about.st_mtime_ns, "inode": about.st_ino, "head": first}
