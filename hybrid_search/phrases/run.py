"""A run of `hybrid-search mine`: the matches of an index, written as they are found."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from hybrid_search.backends.types import Position
from hybrid_search.phrases.match_file import MatchFile, Progress
from hybrid_search.phrases.match_formats import ENCODERS
from hybrid_search.phrases.topics import Topics
from hybrid_search.phrases.types import MinedBlock


class OpenBlocks(Protocol):
    """Begins to mine behind a position."""

    def __call__(self, *, after: Position) -> Iterator[MinedBlock]:
        """Yield the blocks behind `after`, all for None."""
        ...


Report = Callable[["MiningSummary"], None]


@dataclass(frozen=True, slots=True)
class MiningSummary:
    """What a run has done so far.

    Attributes:
        progress: What was looked at and written, by an earlier run that was killed as well.
        resumed: How many documents that earlier run had done.
        seconds: How long this run took.
        topics: The names of the topics.
    """

    progress: Progress
    resumed: int
    seconds: float
    topics: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as it stands in JSON; a topic without a match has 0."""
        matches = self.progress.matches
        return {
            "documents": self.progress.documents,
            "passages": self.progress.passages,
            "damaged": self.progress.damaged,
            "matches": sum(matches.values()),
            "topics": {name: matches.get(name, 0) for name in self.topics},
            "resumed": self.resumed,
            "seconds": round(self.seconds, 3),
        }


def format_summary(summary: MiningSummary) -> str:
    """Return a summary as one line for people."""
    progress = summary.progress
    rate = (progress.documents - summary.resumed) / max(summary.seconds, 1e-9)
    damaged = f", {progress.damaged:,} damaged passages left out" if progress.damaged else ""
    return (
        f"{progress.documents:,} documents ({rate:,.0f}/s), {progress.passages:,} passages, "
        f"{sum(progress.matches.values()):,} matches{damaged}"
    )


def make_run_key(topics: Topics, *place: object) -> str:
    """Return a digest of all that decides which matches a run writes, and in which form."""
    return hashlib.sha256(repr((topics, *place)).encode("utf-8", "replace")).hexdigest()


def write_file(
    open_blocks: OpenBlocks, file: MatchFile, topics: Topics, report: Report
) -> MiningSummary:
    """Mine into a file, behind what it already holds, and return what was done."""
    names, started_at = tuple(topic.name for topic in topics), time.monotonic()
    for block in open_blocks(after=file.start.position):
        file.write(block)
        seconds = time.monotonic() - started_at
        report(MiningSummary(file.progress, file.start.documents, seconds, names))
    file.finish()
    seconds = time.monotonic() - started_at
    return MiningSummary(file.progress, file.start.documents, seconds, names)


def write_stream(
    open_blocks: OpenBlocks,
    write: Callable[[bytes], object],
    format_name: str,
    topics: Topics,
    report: Report,
) -> MiningSummary:
    """Mine into a stream, from the beginning, and return what was done."""
    names, started_at = tuple(topic.name for topic in topics), time.monotonic()
    write_header, encode_rows = ENCODERS[format_name]
    write(write_header())
    progress = start = Progress()
    for block in open_blocks(after=None):
        data = encode_rows(block.matches)
        write(data)
        progress = progress.add(block, start, len(data))
        report(MiningSummary(progress, 0, time.monotonic() - started_at, names))
    return MiningSummary(progress, 0, time.monotonic() - started_at, names)
