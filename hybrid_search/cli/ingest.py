"""The command ``ingest``: index documents."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hybrid_search.api import connect
from hybrid_search.cli import ingest_options, options
from hybrid_search.errors import HybridSearchError
from hybrid_search.ingest.options import IngestOptions, Report, WriteOptions, ignore_report
from hybrid_search.ingest.summary import (
    Summary,
    Tally,
    format_losses,
    format_summary,
)
from hybrid_search.observability import logs


def ingest(
    sources: ingest_options.Sources = None,
    *,
    writing: WriteOptions,
    origin: ingest_options.SourceOptions,
    reading: ingest_options.Reading,
    where: options.Where = None,
    checkpoint: ingest_options.CheckpointFile = None,
    engine: ingest_options.Executor = "local",
    workers: ingest_options.Workers,
    watching: ingest_options.Watching,
    place: ingest_options.IngestPlace,
    log: options.LogOptions,  # noqa: ARG001 (errors are reported by it)
) -> None:
    """Index documents: objects of JSON, rows of tables, calls and tickets as other systems write.

    A document is {"id", "text"} or {"id", "turns": [{"speaker", "text", "start_ms"?, "end_ms"?}]};
    other keys are metadata. Unchanged documents are skipped, and refused ones go to the rejects
    file. The last line on standard output is a JSON summary. Exit status: 0; 1 if documents were
    refused or replaced others of this run; 2 if nothing could run, or an error ended the run
    half-way.
    """
    from hybrid_search.cli.progress import progress
    from hybrid_search.ingest.run import SourceChoice, run_ingest
    from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard

    conditions = options.parse_conditions(where)
    read_options = ingest_options.parse_reading(reading)
    source = SourceChoice(sources or (), read_options, **origin, url=place["url"])
    source.check(checkpoint)
    options.check_lasting(place["url"])
    shard = workers["shard"]
    run_options = IngestOptions.build(
        writing,
        where=conditions,
        shard=Shard.parse(shard) if shard else ALL_DOCUMENTS,
        executor=engine,
        workers=workers["workers"],
    )
    index = writing["index"]
    connection = connect(**place)
    with (
        _tell_what_was_done(index) as tally,
        connection as client,
        _serve_metrics(watching["metrics_port"], watching["metrics_host"]) as report,
    ):
        run_options = run_options.reporting_to(report).reporting_to(tally)
        summary = run_ingest(client.run_ingest, source, run_options, checkpoint, progress)
    _print_summary(summary, index)
    if (summary.rejected or summary.replaced) and not source.follow:
        options.exit_with(1)


@contextmanager
def _tell_what_was_done(index: str) -> Iterator[Tally]:
    """Print the summary of a run that fails half-way, as committed documents stay."""
    tally = Tally()
    try:
        yield tally
    except HybridSearchError:
        if tally.has_begun:
            _print_summary(tally.total(), index)
        raise


@contextmanager
def _serve_metrics(port: int | None, host: str) -> Iterator[Report]:
    """Yield a report that feeds the metrics at `port`; without a port it does nothing."""
    if port is None:
        yield ignore_report
        return
    from hybrid_search.ingest.metrics import RunMetrics, serve_metrics

    metrics = RunMetrics()
    with serve_metrics(metrics, host, port):
        yield metrics


def _print_summary(summary: Summary, index: str) -> None:
    """Print the summary, for people on standard error and for programs on standard output."""
    has_index = summary.documents or summary.skipped
    destination = f"into index {index!r}" if has_index else "and nothing was written"
    logs.log_or_print(
        f"{format_summary(summary)}, in {summary.seconds:.1f} s {destination}",
        extra=summary.to_dict(),
    )
    for line in format_losses(summary):
        logs.log_or_print(line)
    options.print_json(summary.to_dict())
    sys.stdout.flush()
