"""The rejects file: every refused line with its number and the reason, so that nothing is lost and all can be tried again."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import IO

from hybrid_search.backends.base import Refused
from hybrid_search.errors import UsageError
from hybrid_search.ingest.sources import Line


class Rejects:
    """Writes refused lines to `path`, which is made anew when the first of a run comes. May be called from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        self._notes: list[Refused] = []
        self._file: IO[str] | None = None
        self._one_at_a_time = threading.Lock()

    def add(self, line: Line, reason: str, document_id: str | None = None) -> None:
        """Write `line` and the reason. Bytes that are not UTF-8 become lone surrogates, as by ``surrogateescape``, which also gives them back."""
        raw = line.data.decode("utf-8", "surrogateescape").rstrip("\r\n")
        entry = {"source": line.source, "line": line.number, "reason": reason, "document": raw}
        with self._one_at_a_time:
            self._file = self._file or self._open()
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()
            self.count += 1
            self._notes.append(Refused(line.source, line.number, reason, document_id))

    def notes(self) -> list[Refused]:
        """What was refused since this was last asked, without what is in it."""
        with self._one_at_a_time:
            notes, self._notes = self._notes, []
        return notes

    def _open(self) -> IO[str]:
        try:
            return self.path.open("w", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"refused documents cannot be written to {self.path} ({error.strerror}): name another file for them") from error

    def close(self) -> None:
        """Close the file, if there was anything to write."""
        if self._file:
            self._file.close()
