"""The command ``mine``: every mention of topics in an index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid_search.cli import ingest_options, mining_outputs, options
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.observability import logs

if TYPE_CHECKING:
    from hybrid_search.topics.run import MiningSummary

EXIT_DAMAGED = 1


def mine(
    topics: Annotated[
        Path, typer.Option(help="A file of topics, in YAML or JSON: what to look for.")
    ],
    index: options.Index = DEFAULT_INDEX,
    *,
    output: mining_outputs.Output,
    report: mining_outputs.Report,
    engine: Annotated[
        str,
        typer.Option(help="Where spans are scored: local, or ray: by actors of a Ray cluster."),
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
    from hybrid_search.api import connect
    from hybrid_search.cli.mining_job import mine_index
    from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
    from hybrid_search.topics.topics import Topics

    out, to_index, shard = output["out"], output["to_index"], workers["shard"]
    mining_outputs.check_outputs(output, report, shard)
    loaded = Topics.load(topics)
    part = Shard.parse(shard) if shard else ALL_DOCUMENTS
    with connect(**place) as client:
        mining_outputs.check_fields(client, index, report)
        upload = mining_outputs.open_upload(client, index, to_index) if to_index else None
        summary = mine_index(
            client,
            loaded,
            index,
            output,
            part,
            feedback=feedback,
            engine=engine,
            workers=workers["workers"],
        )
        if out is not None:
            whole = None if output["since"] else part
            mining_outputs.write_report(client, index, out, report, summary, whole)
        if upload and out is not None:
            upload(out, summary, report["date"])
    _show(summary, out)
    options.exit_with(EXIT_DAMAGED if summary.progress.damaged else 0)


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
