"""The command ``mine``: every mention of some topics in an index."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hybrid_search.cli import ingest_options, options
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.observability import logs
from hybrid_search.observability.escapes import blank_controls, escape_json

EXIT_DAMAGED = 1


def mine(
    topics: Annotated[
        Path, typer.Option(help="A file of topics, in YAML or JSON: what to look for.")
    ],
    index: options.Index = DEFAULT_INDEX,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File for the matches. After a kill the same command continues it. Default: "
            "standard output."
        ),
    ] = None,
    output_format: Annotated[
        str, typer.Option("--format", help="jsonl, csv or parquet (a file only).")
    ] = "jsonl",
    shard: ingest_options.ShardName = None,
    url: options.Url = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
) -> None:
    """Find every mention of some topics in an index: all of them, not the best ten.

    Every span of every passage is compared with every phrase; a clause is at most one mention of a
    topic. A match is one JSON object or row, in the order of the documents. With --out the last
    line on standard output is a JSON summary. Exit status: 0; 1 if damaged passages were left out;
    2 if nothing could run, or an error ended the run half-way.
    """
    with options.report_errors():
        from hybrid_search.api import connect
        from hybrid_search.cli.progress import mining_progress
        from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
        from hybrid_search.phrases import match_formats, run
        from hybrid_search.phrases.match_file import MatchFile
        from hybrid_search.phrases.topics import Topics
        from hybrid_search.phrases.tuning import read_tuning

        match_formats.check_format(output_format, out)
        loaded_topics = Topics.load(topics)
        documents = Shard.parse(shard) if shard else ALL_DOCUMENTS
        with connect(url, model=model, device=device, precision=precision) as client:
            open_blocks = partial(client.mine_blocks, loaded_topics, index=index, shard=documents)
            with mining_progress(client.describe(index).documents) as report:
                if out is None:
                    write = _write_csv if output_format == "csv" else _write_jsonl
                    summary = run.write_stream(
                        open_blocks, write, output_format, loaded_topics, report
                    )
                else:
                    tuning_file = loaded_topics.tuning_file
                    run_key = run.make_run_key(
                        loaded_topics,
                        read_tuning(tuning_file) if tuning_file else None,
                        client,
                        client.describe(index).spec,
                        output_format,
                        documents,
                    )
                    with MatchFile(out, output_format, run_key) as file:
                        summary = run.write_file(open_blocks, file, loaded_topics, report)
        logs.log_or_print(
            f"{run.format_summary(summary)}, in {summary.seconds:.1f} s",
            extra=summary.to_dict(),
        )
        counts = summary.to_dict()["topics"].items()
        logs.log_or_print(", ".join(f"{name}: {count:,}" for name, count in counts))
        if out is not None:
            options.print_json(summary.to_dict())
    options.exit_with(EXIT_DAMAGED if summary.progress.damaged else 0)


def _write_jsonl(data: bytes) -> None:
    """Write JSON lines to standard output, without what a terminal would obey."""
    for line in data.decode().split("\n")[:-1]:
        print(escape_json(line))


def _write_csv(data: bytes) -> None:
    sys.stdout.write(blank_controls(data.decode()))
