"""The job of ``mine``: mine an index, and write the matches to a file or standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hybrid_search.backends.types import Position
from hybrid_search.cli.progress import mining_progress
from hybrid_search.client import Client
from hybrid_search.ingest.shards import Shard
from hybrid_search.observability.escapes import blank_controls, escape_json
from hybrid_search.topics import run
from hybrid_search.topics.match_file import MatchFile
from hybrid_search.topics.run import MiningSummary
from hybrid_search.topics.since import begin_mark, find_start, write_mark
from hybrid_search.topics.topics import Topics
from hybrid_search.topics.tuning import read_tuning
from hybrid_search.topics.types import MinedBlock


@dataclass(frozen=True, slots=True)
class MiningJob:
    """A mining job: what to mine, and the output format."""

    client: Client
    topics: Topics
    index: str
    shard: Shard
    output_format: str
    engine: str
    workers: int | None
    feedback: int

    def mine(self, out: Path | None, since: str | None) -> MiningSummary:
        """Write the matches to a file or standard output, and return a summary."""
        content = self._digest()
        mark = begin_mark(self.client.backend, self.index, content)
        position, written_since = find_start(since, mark, self.index)

        def open_blocks(after: Position) -> Iterator[MinedBlock]:
            return self.client.mine_blocks(
                self.topics,
                index=self.index,
                after=position if after is None else after,
                shard=self.shard,
                engine=self.engine,
                workers=self.workers,
                feedback=self.feedback,
                written_since=written_since,
                count_unlikely=True,
            )

        with mining_progress(self.client.describe(self.index).documents) as report:
            if out is None:
                write = _write_csv if self.output_format == "csv" else _write_jsonl
                return run.write_stream(open_blocks, write, self.output_format, self.topics, report)
            first = written_since or position
            run_key = run.make_run_key(self.topics, content, first, self.client, self.output_format)
            with MatchFile(out, self.output_format, run_key) as file:
                summary = run.write_file(open_blocks, file, self.topics, report)
        if mark:
            write_mark(out, replace(mark, position=summary.progress.position))
        return summary

    def _digest(self) -> str:
        """Return a digest of everything that decides which spans are matches."""
        tuning_file = self.topics.tuning_file
        tuning = read_tuning(tuning_file) if tuning_file else None
        spec = self.client.describe(self.index).spec
        topics = Topics(self.topics.topics)  # independent of their file's path
        return run.make_run_key(topics, tuning, spec, self.shard, self.feedback)


def _write_jsonl(data: bytes) -> None:
    """Write JSON lines to standard output, with terminal control characters escaped."""
    for line in data.decode().split("\n")[:-1]:
        print(escape_json(line))


def _write_csv(data: bytes) -> None:
    sys.stdout.write(blank_controls(data.decode()))
