"""The file that matches are written to, and the checkpoint beside it.

The checkpoint says up to which byte the file holds the matches of which part of the index. After a
kill the same command cuts the file there and goes on, so that every match is in it exactly once.
The file is on the disk before the checkpoint tells of it.
"""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any, Self

import numpy as np

from hybrid_search.backends.types import Position
from hybrid_search.errors import UsageError
from hybrid_search.file_errors import explain_failure
from hybrid_search.observability.escapes import defuse_cell
from hybrid_search.private_files import (
    append_to_file,
    create_file,
    flush_to_disk,
    replace_file,
    write_all,
)
from hybrid_search.topics.call_counts import add_tables
from hybrid_search.topics.match import Match, to_row
from hybrid_search.topics.types import CallTables, MinedBlock, UnlikelySpans


def to_jsonl(matches: Sequence[Match]) -> bytes:
    """Return one JSON object a line."""
    lines = (json.dumps(match.to_dict(), ensure_ascii=False) + "\n" for match in matches)
    return "".join(lines).encode("utf-8", "surrogatepass")


def to_csv(matches: Sequence[Match]) -> bytes:
    """Return one row a line, without the header; formulas are defused."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows(map(defuse_cell, to_row(match).values()) for match in matches)
    return buffer.getvalue().encode()


ENCODERS: dict[str, tuple[bytes, Callable[[Sequence[Match]], bytes]]] = {
    "jsonl": (b"", to_jsonl),
    "csv": (f"{','.join(Match.__slots__)}\n".encode(), to_csv),
    "parquet": (b"", to_jsonl),
}
"""The header and the rows of each format, as they are written while a run lasts.

A Parquet file cannot be continued after a kill: it is made from JSON lines at the end.
"""


def check_format(name: str, out: Path | None) -> None:
    """Check that matches can be written in a format to a file, or to standard output.

    MissingExtraError is raised if it needs a library that is not installed.

    Raises:
        UsageError: If the format is unknown, or needs a file.
    """
    if name not in ENCODERS:
        raise UsageError(f"format is {name!r}: it must be {', '.join(ENCODERS)}")
    if name == "parquet":
        if out is None:
            raise UsageError("format is 'parquet', which needs a file: add --out FILE")
        from hybrid_search.topics import match_parquet  # noqa: F401 (raises MissingExtraError)


CHECKPOINT_SECONDS = 1.0
"""Between two writes of the checkpoint, at least: each waits for the disk."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come: what was looked at, what was written, and where it goes on.

    Attributes:
        documents: How many documents were looked at.
        passages: How many passages.
        damaged: How many passages were left out.
        matches: How many matches of each topic were written, by its name.
        size: How many bytes of the file hold them.
        position: Where the scan of the index goes on.
        unlikely: What is below the threshold of each topic, by its name.
        calls: The calls by stratum.
    """

    documents: int = 0
    passages: int = 0
    damaged: int = 0
    matches: Mapping[str, int] = field(default_factory=dict)
    size: int = 0
    position: Position = None
    unlikely: Mapping[str, UnlikelySpans] = field(default_factory=dict)
    calls: CallTables = field(default_factory=dict)

    def add(self, block: MinedBlock, start: Progress, size: int) -> Progress:
        """Return the progress with a block of a run that began at `start`."""
        matches = Counter(self.matches)
        matches.update(match.topic for match in block.matches)
        unlikely = dict(self.unlikely)
        for name, spans in block.unlikely.items():
            unlikely[name] = unlikely.get(name, UnlikelySpans()) + spans
        return Progress(
            start.documents + block.documents,
            start.passages + block.passages,
            start.damaged + block.damaged,
            dict(matches),
            self.size + size,
            block.position,
            unlikely,
            add_tables(self.calls, block.calls),
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the progress in a checkpoint, where `asdict` has put it as JSON."""
        unlikely = {
            name: UnlikelySpans.from_dict(spans) for name, spans in values["unlikely"].items()
        }
        calls = {
            name: {value: np.array(counts, dtype=np.int64) for value, counts in own.items()}
            for name, own in values["calls"].items()
        }
        return cls(**{**values, "unlikely": unlikely, "calls": calls})


class MatchFile:
    """Writes matches to a file; a run of the same `run_key` that was killed is continued.

    Attributes:
        start: How far the earlier run had come; nothing if there was none.
        progress: How far this run has come, the earlier one included.
    """

    def __init__(self, path: Path, format_name: str, run_key: str) -> None:
        self._path, self._format, self._run_key = path, format_name, run_key
        self._rows = path.with_name(f"{path.name}.part") if format_name == "parquet" else path
        self._checkpoint = path.with_name(f"{path.name}.checkpoint")
        self._written_at = time.monotonic()
        self.start = self.progress = self._read_checkpoint() or Progress()
        self._file = self._open()

    def write(self, block: MinedBlock) -> Progress:
        """Append the matches of a block, and from time to time write the checkpoint."""
        _, encode_rows = ENCODERS[self._format]
        data = encode_rows(block.matches)
        with self._explain_failure():
            write_all(self._file, data)
        self.progress = self.progress.add(block, self.start, len(data))
        if time.monotonic() - self._written_at >= CHECKPOINT_SECONDS:
            self._write_checkpoint()
            self._written_at = time.monotonic()
        return self.progress

    def finish(self) -> None:
        """Complete the file, and remove the checkpoint."""
        with self._explain_failure():
            flush_to_disk(self._file)
            if self._format == "parquet":
                from hybrid_search.topics.match_parquet import write_parquet

                unfinished = self._path.with_name(f"{self._path.name}.new")
                os.close(create_file(unfinished))
                write_parquet(self._rows, unfinished)
                unfinished.replace(self._path)
                self._rows.unlink()
            self._checkpoint.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _open(self) -> FileIO:
        header, _ = ENCODERS[self._format]
        with self._explain_failure():
            if self.start.size:
                file = FileIO(append_to_file(self._rows), "ab")
                file.truncate(self.start.size)
                return file
            self._checkpoint.unlink(missing_ok=True)
            file = FileIO(create_file(self._rows), "wb")
            write_all(file, header)
            self.progress = Progress(size=len(header))
            return file

    def _read_checkpoint(self) -> Progress | None:
        """Return the progress of an earlier run, if this one is the same and its file is there."""
        try:
            state = json.loads(self._checkpoint.read_bytes())
            progress = Progress.from_dict(state["progress"])
            is_same = state["run"] == self._run_key and self._rows.stat().st_size >= progress.size
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{self._checkpoint} is not a checkpoint: remove it, or name another file with "
                "--out"
            ) from error
        return progress if is_same else None

    def _write_checkpoint(self) -> None:
        state: dict[str, Any] = {"run": self._run_key, "progress": asdict(self.progress)}
        with self._explain_failure():
            flush_to_disk(self._file)
            replace_file(self._checkpoint, json.dumps(state, default=np.ndarray.tolist).encode())

    def _explain_failure(self) -> AbstractContextManager[None]:
        return explain_failure(
            f"matches cannot be written to {self._path}",
            "free space, or name another file with --out, and run the same command again",
        )
