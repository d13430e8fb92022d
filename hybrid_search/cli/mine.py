"""The command ``mine``: every mention of topics in an index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hybrid_search.cli import ingest_options, options
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.errors import UsageError
from hybrid_search.observability import logs

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
    to_index: Annotated[
        str | None,
        typer.Option(
            help="Index of matches on the same server, where those of these topics are replaced; "
            "needs --out FILE in jsonl."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            help="Only documents written since are mined. On a server a time in ISO 8601, in UTC "
            "if it has no offset; on an embedded index the --out of an earlier, complete run."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="File for a page of the matches, in HTML; needs --out FILE in jsonl."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(help="Metadata field whose values the report counts; may be repeated."),
    ] = None,
    date: Annotated[
        str | None,
        typer.Option(help="Metadata field by which the report counts weeks."),
    ] = None,
    shard: ingest_options.ShardName = None,
    engine: Annotated[
        str,
        typer.Option(help="Where spans are scored: local, or ray: by actors of a Ray cluster."),
    ] = "local",
    workers: ingest_options.Workers = None,
    feedback: Annotated[
        int,
        typer.Option(
            help="Move each phrase to the best spans of so many documents first: 10 is usual."
        ),
    ] = 0,
    url: options.Url = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
) -> None:
    """Find the mentions of some topics in a whole index, not only in the ten best documents.

    Every span of every passage is compared with every phrase; a clause is at most one mention of a
    topic. How many more mentions are below the threshold is estimated. A match is one JSON object
    or row, in the order of the documents. With --out the last line on standard output is a JSON
    summary. Exit status: 0; 1 if damaged passages were left out; 2 if nothing could run, or an
    error ended the run half-way.
    """
    with options.report_errors():
        from hybrid_search.api import connect
        from hybrid_search.cli.match_upload import check_upload, open_upload
        from hybrid_search.cli.mining_job import MiningJob
        from hybrid_search.cli.report_options import ReportOptions
        from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
        from hybrid_search.phrases import match_formats
        from hybrid_search.phrases.run import format_summary, format_topics
        from hybrid_search.phrases.topics import Topics

        match_formats.check_format(output_format, out)
        _check_since(since, out)
        page = ReportOptions(report, tuple(by or ()), date)
        page.check(out, output_format, to_index)
        check_upload(to_index, out, output_format, shard)
        loaded_topics = Topics.load(topics)
        documents = Shard.parse(shard) if shard else ALL_DOCUMENTS
        with connect(url, model=model, device=device, precision=precision) as client:
            job = MiningJob(
                client,
                loaded_topics,
                index,
                documents,
                output_format,
                engine,
                workers,
                feedback,
            )
            page.check_index(client, index)
            upload = open_upload(client, index, to_index) if to_index else None
            summary = job.mine(out, since)
            if out is not None:
                page.write(client, index, out, summary, None if since else documents)
            if upload and out is not None:
                upload(out, summary, date)
        logs.log_or_print(
            f"{format_summary(summary)}, in {summary.seconds:.1f} s",
            extra=summary.to_full_dict(),
        )
        for line in format_topics(summary):
            logs.log_or_print(line)
        if out is not None:
            options.print_json(summary.to_full_dict())
    options.exit_with(EXIT_DAMAGED if summary.progress.damaged else 0)


def _check_since(since: str | None, out: Path | None) -> None:
    """Raise UsageError if the matches of the earlier run would be overwritten."""
    if since and out and Path(since).resolve() == out.resolve():
        raise UsageError(
            f"--since and --out are both {out}, whose matches would be lost: name another --out"
        )
