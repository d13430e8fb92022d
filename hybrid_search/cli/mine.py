"""The command ``mine``: every mention of topics in an index."""

# The annotations of a table are read at run time, so they are not postponed here.
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from hybrid_search.cli import ingest_options, options
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.errors import UsageError
from hybrid_search.observability import logs
from hybrid_search.parameters import Parameter

if TYPE_CHECKING:
    from hybrid_search.cli.mining_outputs import ReportOptions
    from hybrid_search.topics.run import MiningSummary

EXIT_DAMAGED = 1


class Output(TypedDict, total=False):
    """Where the matches go."""

    out: Annotated[
        Path | None,
        Parameter(
            "File for the matches. After a kill the same command continues it. Default: standard "
            "output."
        ),
    ]
    output_format: Annotated[
        str, Parameter("jsonl, csv or parquet (a file only).", default="jsonl", option="--format")
    ]
    to_index: Annotated[
        str | None,
        Parameter(
            "Index of matches on the same server, where those of these topics are replaced; needs "
            "--out FILE in jsonl."
        ),
    ]
    since: Annotated[
        str | None,
        Parameter(
            "Only documents written since are mined. On a server a time in ISO 8601, in UTC if it "
            "has no offset; on an embedded index the --out of an earlier, complete run."
        ),
    ]


class Report(TypedDict, total=False):
    """The page of the matches."""

    report: Annotated[
        Path | None,
        Parameter("File for a page of the matches, in HTML; needs --out FILE in jsonl."),
    ]
    by: Annotated[
        Sequence[str], Parameter("Metadata field whose values the report counts.", default=())
    ]
    date: Annotated[str | None, Parameter("Metadata field by which the report counts weeks.")]


def mine(
    topics: Annotated[
        Path, typer.Option(help="A file of topics, in YAML or JSON: what to look for.")
    ],
    index: options.Index = DEFAULT_INDEX,
    *,
    output: Output,
    report: Report,
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
    from hybrid_search.cli.mining_job import MiningJob
    from hybrid_search.cli.mining_outputs import ReportOptions, open_upload
    from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
    from hybrid_search.topics.topics import Topics

    out, form, to_index = output["out"], output["output_format"], output["to_index"]
    shard, since = workers["shard"], output["since"]
    page = ReportOptions(report["report"], tuple(report["by"]), report["date"])
    _check(output, page, shard)
    loaded = Topics.load(topics)
    part = Shard.parse(shard) if shard else ALL_DOCUMENTS
    with connect(**place) as client:
        job = MiningJob(client, loaded, index, part, form, engine, workers["workers"], feedback)
        page.check_index(client, index)
        upload = open_upload(client, index, to_index) if to_index else None
        summary = job.mine(out, since)
        if out is not None:
            page.write(client, index, out, summary, None if since else part)
        if upload and out is not None:
            upload(out, summary, report["date"])
    _show(summary, out)
    options.exit_with(EXIT_DAMAGED if summary.progress.damaged else 0)


def _check(output: Output, page: "ReportOptions", shard: str | None) -> None:
    """Raise UsageError if options contradict each other."""
    from hybrid_search.cli.mining_outputs import check_upload
    from hybrid_search.topics import match_formats

    out, form, to_index = output["out"], output["output_format"], output["to_index"]
    match_formats.check_format(form, out)
    since = output["since"]
    if since and out and Path(since).resolve() == out.resolve():
        raise UsageError(
            f"--since and --out are both {out}, whose matches would be lost: name another --out"
        )
    page.check(out, form, to_index)
    check_upload(to_index, out, form, shard)


def _show(summary: "MiningSummary", out: Path | None) -> None:
    """Print the summary, for people on standard error and for programs on standard output."""
    from hybrid_search.topics.run import format_summary, format_topics

    logs.log_or_print(
        f"{format_summary(summary)}, in {summary.seconds:.1f} s", extra=summary.to_full_dict()
    )
    for line in format_topics(summary):
        logs.log_or_print(line)
    if out is not None:
        options.print_json(summary.to_full_dict())
