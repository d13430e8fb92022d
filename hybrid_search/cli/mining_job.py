"""The work of ``mine``: mine an index, and write the matches to a file or standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

from hybrid_search.backends.types import Position
from hybrid_search.cli.mining_outputs import Output
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


def mine_index(
    client: Client,
    topics: Topics,
    index: str,
    output: Output,
    shard: Shard,
    *,
    feedback: int,
    engine: str,
    workers: int | None,
) -> MiningSummary:
    """Write the matches to a file or standard output."""
    out, form = output["out"], output["output_format"]
    content = _digest(client, topics, index, shard, feedback)
    mark = begin_mark(client.backend, index, content)
    position, written_since = find_start(output["since"], mark, index)

    def open_blocks(after: Position) -> Iterator[MinedBlock]:
        return client.mine_blocks(
            topics,
            index=index,
            after=position if after is None else after,
            shard=shard,
            written_since=written_since,
            count_unlikely=True,
            feedback=feedback,
            engine=engine,
            workers=workers,
        )

    with mining_progress(client.describe(index).documents) as report:
        if out is None:
            write = _write_csv if form == "csv" else _write_jsonl
            return run.write_stream(open_blocks, write, form, topics, report)
        run_key = run.make_run_key(topics, content, written_since or position, client, form)
        with MatchFile(out, form, run_key) as file:
            summary = run.write_file(open_blocks, file, topics, report)
    if mark:
        write_mark(out, replace(mark, position=summary.progress.position))
    return summary


def _digest(client: Client, topics: Topics, index: str, shard: Shard, feedback: int) -> str:
    """Return a digest of everything that decides which spans are matches."""
    tuning = read_tuning(topics.tuning_file) if topics.tuning_file else None
    spec = client.describe(index).spec
    content = Topics(topics.topics)  # independent of their file's path
    return run.make_run_key(content, tuning, spec, shard, feedback)


def _write_jsonl(data: bytes) -> None:
    """Write JSON lines to standard output, with terminal control characters escaped."""
    for line in data.decode().split("\n")[:-1]:
        print(escape_json(line))


def _write_csv(data: bytes) -> None:
    sys.stdout.write(blank_controls(data.decode()))
