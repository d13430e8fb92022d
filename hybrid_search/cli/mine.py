"""The command ``mine``: every mention of topics in an index."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid_search.api import connect
from hybrid_search.cli import ingest_options, mining_outputs, options
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.observability import logs
from hybrid_search.observability.escapes import blank_controls, escape_json

if TYPE_CHECKING:
    from hybrid_search.backends.types import Position
    from hybrid_search.client import Client
    from hybrid_search.ingest.shards import Shard
    from hybrid_search.topics.call_counts import CallGroups
    from hybrid_search.topics.run import MiningSummary
    from hybrid_search.topics.topics import Topics
    from hybrid_search.topics.types import MinedBlock


def mine(
    topics: Annotated[
        Path, typer.Option(help="A file of topics, in YAML or JSON: what to look for.")
    ],
    index: options.Index = DEFAULT_INDEX,
    *,
    output: mining_outputs.Output,
    engine: Annotated[
        str, typer.Option(help="Where spans are scored: local, or ray: by actors of a Ray cluster.")
    ] = "local",
    workers: ingest_options.Workers,
    feedback: Annotated[
        int,
        typer.Option(
            help="First move each phrase to the best spans of this many documents, usually 10.",
            rich_help_panel="Asking",
        ),
    ] = 0,
    place: options.Place,
) -> None:
    """Find the mentions of some topics in a whole index, not only in the ten best documents.

    Every span of every passage is compared with every phrase; a clause is at most one mention of a
    topic. How many more mentions are below the threshold is estimated. A match is one JSON object
    or row, in the order of the documents. With --out the last line on standard output is a JSON
    summary. Exit status: 0; 1 if damaged passages were left out; 2 if nothing could run, or an
    error ended the run half-way.
    """
    from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
    from hybrid_search.topics.topics import Topics

    out, to_index, shard = output["out"], output["to_index"], workers["shard"]
    mining_outputs.check_outputs(output, shard)
    loaded = Topics.load(topics)
    part = Shard.parse(shard) if shard else ALL_DOCUMENTS
    with connect(**place) as client:
        groups = mining_outputs.open_groups(client, index, output)
        upload = mining_outputs.open_upload(client, index, to_index) if to_index else None
        summary = _mine_index(
            client,
            loaded,
            index,
            output,
            part,
            groups,
            feedback=feedback,
            engine=engine,
            workers=workers["workers"],
        )
        if out is not None:
            mining_outputs.write_report(client, index, out, output, summary, groups)
        if upload and out is not None:
            upload(out, summary, output["date"])
    _show(summary, out)
    if summary.progress.damaged:
        options.exit_with(1)


def _mine_index(
    client: Client,
    topics: Topics,
    index: str,
    output: mining_outputs.Output,
    shard: Shard,
    groups: CallGroups,
    *,
    feedback: int,
    engine: str,
    workers: int | None,
) -> MiningSummary:
    """Write the matches to a file or standard output."""
    from hybrid_search.cli.progress import mining_progress
    from hybrid_search.topics import run
    from hybrid_search.topics.match_file import MatchFile
    from hybrid_search.topics.since import begin_mark, find_start, write_mark

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
            groups=groups,
            feedback=feedback,
            engine=engine,
            workers=workers,
        )

    with mining_progress(client.describe(index).documents) as report:
        if out is None:
            write = _write_csv if form == "csv" else _write_jsonl
            return run.write_stream(open_blocks, write, form, topics, report)
        run_key = run.make_run_key(topics, content, written_since or position, client, form, groups)
        with MatchFile(out, form, run_key) as file:
            summary = run.write_file(open_blocks, file, topics, report)
    if mark:
        write_mark(out, replace(mark, position=summary.progress.position))
    return summary


def _digest(client: Client, topics: Topics, index: str, shard: Shard, feedback: int) -> str:
    """Return a digest of everything that decides which spans are matches."""
    from hybrid_search.topics import run
    from hybrid_search.topics.topics import Topics
    from hybrid_search.topics.tuning import read_tuning

    tuning = read_tuning(topics.tuning_file) if topics.tuning_file else None
    spec = client.describe(index).spec
    content = Topics(topics.topics, rules=topics.rules)  # independent of their file's path
    return run.make_run_key(content, tuning, spec, shard, feedback)


def _write_jsonl(data: bytes) -> None:
    """Write JSON lines to standard output, with terminal control characters escaped."""
    for line in data.decode().split("\n")[:-1]:
        print(escape_json(line))


def _write_csv(data: bytes) -> None:
    sys.stdout.write(blank_controls(data.decode()))


def _show(summary: MiningSummary, out: Path | None) -> None:
    """Print the summary, for people on standard error and for programs on standard output."""
    from hybrid_search.topics.run import format_summary, format_topics

    logs.log_or_print(
        f"{format_summary(summary)}, in {summary.seconds:.1f} s", extra=summary.to_dict()
    )
    for line in format_topics(summary):
        logs.log_or_print(line)
    if out is not None:
        options.print_json(summary.to_dict())
