"""The command ``ingest``: index documents."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import typer

from hybrid_search.cli import ingest_options, options
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.errors import HybridSearchError
from hybrid_search.ingest.summary import (
    Summary,
    format_losses,
    format_summary,
    propose_cleaning,
)
from hybrid_search.observability import logs
from hybrid_search.observability.logs import Format

if TYPE_CHECKING:
    from hybrid_search.ingest.observe.reports import Tally

EXIT_LOSSES = 1


def ingest(
    sources: ingest_options.Sources = None,
    index: options.Index = DEFAULT_INDEX,
    url: options.Url = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    dimension: options.Dimension = None,
    rejects: ingest_options.Rejects = None,
    policy: ingest_options.Policy = None,
    codes: ingest_options.Codes = None,
    sample: ingest_options.Sample = False,
    format: ingest_options.FormatName = None,
    encoding: ingest_options.EncodingName = None,
    columns: ingest_options.ColumnNames = None,
    rows: ingest_options.RowKind = "document",
    split_speakers: ingest_options.SplitSpeakers = False,
    strip_html: ingest_options.StripHtml = False,
    strip_quotes: ingest_options.StripQuotes = False,
    where: ingest_options.Where = None,
    from_index: ingest_options.FromIndex = None,
    from_url: ingest_options.FromUrl = None,
    follow: ingest_options.Follow = None,
    retry: ingest_options.Retry = None,
    checkpoint: ingest_options.CheckpointFile = None,
    patience: ingest_options.Patience = None,
    shard: ingest_options.ShardName = None,
    executor: ingest_options.ExecutorName = "local",
    workers: ingest_options.Workers = None,
    metrics_port: ingest_options.MetricsPort = None,
    metrics_host: ingest_options.MetricsHost = ingest_options.LOOPBACK,
    log_format: ingest_options.LogFormat = Format.text,
    log_level: ingest_options.LogLevel = None,
    profile: ingest_options.Profile = False,
) -> None:
    """Index documents: objects of JSON, rows of tables, calls and tickets as other systems write.

    A document is {"id", "text"} or {"id", "turns": [{"speaker", "text", "start_ms"?, "end_ms"?}]};
    other keys are metadata. Unchanged documents are skipped, and refused ones go to the rejects
    file. The last line on standard output is a JSON summary. Exit status: 0; 1 if documents were
    refused or replaced others of this run; 2 if nothing could run, or an error ended the run
    half-way.
    """
    with options.report_errors(log_format, log_level):
        from hybrid_search.api import connect
        from hybrid_search.cli.progress import progress
        from hybrid_search.ingest import run
        from hybrid_search.ingest.cleaning import Cleaning
        from hybrid_search.ingest.observe.reports import combine_reports, serve_reports
        from hybrid_search.ingest.options import IngestOptions
        from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
        from hybrid_search.ingest.sources.choice import SourceChoice
        from hybrid_search.ingest.sources.server_index import ForeignIndex

        conditions = options.parse_conditions(where)
        read_options = ingest_options.parse_read_options(
            columns, rows, format, encoding, split_speakers=split_speakers
        )
        source = SourceChoice(
            paths=sources or (),
            read_options=read_options,
            sample=sample,
            retry=retry,
            follow=follow,
            foreign_index=ForeignIndex(from_index, read_options, conditions or {})
            if from_index
            else None,
            from_url=from_url,
            url=url,
        )
        source.check()
        options.check_lasting(url)
        source.check_checkpoint(checkpoint)
        run_options = IngestOptions(
            index=index,
            rejects=rejects,
            policy=policy,
            codes=codes,
            where=conditions,
            shard=Shard.parse(shard) if shard else ALL_DOCUMENTS,
            cleaning=Cleaning(html=strip_html, quotes=strip_quotes),
            executor=executor,
            workers=workers,
        )
        connection = connect(
            url,
            model=model,
            device=device,
            dimension=dimension,
            precision=precision,
            patience=patience,
        )
        with (
            _tell_what_was_done(index, profile=profile) as tally,
            connection as client,
            serve_reports(metrics_port, metrics_host) as report,
        ):
            run_options = replace(run_options, report=combine_reports(report, tally))
            summary = run.run_ingest(client.run_ingest, source, run_options, checkpoint, progress)
        _print_summary(summary, index, profile=profile)
        has_losses = bool(summary.rejected or summary.replaced)
        _exit(EXIT_LOSSES if has_losses and not follow else 0)


@contextmanager
def _tell_what_was_done(index: str, *, profile: bool) -> Iterator[Tally]:
    """Print the summary of a run that fails half-way, as committed documents stay."""
    from hybrid_search.ingest.observe.reports import Tally

    tally = Tally()
    try:
        yield tally
    except HybridSearchError:
        if tally.has_begun:
            _print_summary(tally.total(), index, profile=profile)
        raise


def _print_summary(summary: Summary, index: str, *, profile: bool) -> None:
    """Print the summary, for people on standard error and for programs on standard output."""
    from hybrid_search.ingest.observe import profile_table

    has_index = summary.documents or summary.skipped
    destination = f"into index {index!r}" if has_index else "and nothing was written"
    logs.log_or_print(
        f"{format_summary(summary)}, in {summary.seconds:.1f} s {destination}",
        extra=summary.to_dict(),
    )
    if proposal := propose_cleaning(summary):
        logs.log_or_print(proposal)
    for line in format_losses(summary):
        logs.log_or_print(line)
    if profile:
        logs.log_or_print(profile_table.table(summary))
    options.print_json(summary.to_dict())
    sys.stdout.flush()


def _exit(status: int) -> NoReturn:
    raise typer.Exit(status)
