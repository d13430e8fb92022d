"""``ingest``: documents into an index."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hybrid_search.cli import inputs, lasting, options, spreading, watching
from hybrid_search.config import DEFAULT_INDEX, settings
from hybrid_search.ingest.summary import Summary
from hybrid_search.observability import logs
from hybrid_search.observability.logs import Format

EXIT_REFUSED = 1


def ingest(
    sources: inputs.Sources = None,
    index: options.Index = DEFAULT_INDEX,
    url: options.Url = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    dimension: options.Dimension = None,
    rejects: inputs.Rejects = None,
    policy: Annotated[
        str | None,
        typer.Option(help="Windows whose vectors find passages, as in 6/1. Default: the index's."),
    ] = None,
    sample: inputs.Sample = False,
    columns: inputs.ColumnNames = None,
    where: inputs.Where = None,
    from_index: inputs.FromIndex = None,
    from_url: inputs.FromUrl = None,
    text_field: inputs.TextField = "text",
    id_field: inputs.IdField = "_id",
    follow: inputs.Follow = None,
    retry: inputs.Retry = None,
    checkpoint: lasting.CheckpointFile = None,
    patience: lasting.Patience = None,
    shard: spreading.ShardName = None,
    executor: spreading.ExecutorName = "local",
    workers: spreading.Workers = None,
    metrics_port: watching.MetricsPort = None,
    metrics_host: watching.MetricsHost = watching.LOOPBACK,
    log_format: watching.LogFormat = Format.text,
    log_level: watching.LogLevel = None,
    profile: watching.Profile = False,
) -> None:
    """Index documents, one JSON object a line: {"id", "text"} or {"id", "turns": [{"speaker",
    "text", "start_ms"?, "end_ms"?}]}, or one row of a table each.

    All other keys are kept as metadata. Unchanged documents are skipped, refused ones go to the
    rejects file, and the last line on standard output is a JSON summary. Exit status: 0, 1 if some
    documents were refused, 2 if nothing could run. SIGTERM and Ctrl-C end the reading: what was
    read is finished.
    """
    with options.report_errors(log_format, log_level):
        from hybrid_search.api import connect
        from hybrid_search.cli.following import follow_folder
        from hybrid_search.cli.progress import progress
        from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
        from hybrid_search.ingest.sources.server_index import ForeignIndex

        inputs.check_one(sources, sample=sample, from_index=from_index, follow=follow, retry=retry)
        lasting.check(checkpoint, retry=retry, from_index=from_index, follow=follow)
        column_map, conditions, parsed_shard = (
            inputs.parse_columns(columns),
            options.parse_conditions(where),
            Shard.parse(shard) if shard else ALL_DOCUMENTS,
        )
        rejects_file = rejects or Path(f"{parsed_shard.add_suffix(index)}.rejected.jsonl")
        connection = connect(
            url,
            model=model,
            device=device,
            dimension=dimension,
            precision=precision,
            patience=patience,
        )
        with (
            connection as client,
            watching.serve_reports(metrics_port, metrics_host) as report_metrics,
        ):
            ingest_lines = partial(
                client.ingest_lines,
                index=index,
                policy=policy,
                where=conditions,
                shard=parsed_shard,
                engine=executor,
                workers=workers,
            )
            if follow:
                summary = follow_folder(ingest_lines, follow, column_map, rejects, report_metrics)
            else:
                foreign_index = (
                    ForeignIndex(from_index, text_field, id_field, conditions or {})
                    if from_index
                    else None
                )
                with (
                    inputs.open_input(
                        sources,
                        sample,
                        column_map,
                        rejects_file,
                        foreign_index,
                        from_url,
                        url,
                        retry,
                    ) as source_input,
                    progress(source_input.size) as report_progress,
                ):
                    line_checkpoint = lasting.open_checkpoint(
                        checkpoint,
                        source_input.files,
                        settings(url).url,
                        index,
                        column_map,
                        conditions,
                        parsed_shard,
                    )
                    summary = lasting.run_resumable(
                        partial(
                            ingest_lines,
                            report=watching.combine_reports(report_metrics, report_progress),
                        ),
                        source_input.lines,
                        rejects_file,
                        retry,
                        line_checkpoint,
                    )
        _tell(summary, index, profile=profile)
        raise typer.Exit(EXIT_REFUSED if summary.rejected and not follow else 0)


def _tell(summary: Summary, index: str, *, profile: bool) -> None:
    """What was done, for people and then for programs."""
    from hybrid_search.cli.progress import format_summary
    from hybrid_search.ingest.observe import profile_table

    logs.log_or_print(
        f"{format_summary(summary)}, in {summary.seconds:.1f} s into index {index!r}",
        extra=summary.to_dict(),
    )
    if summary.rejected:
        logs.log_or_print(f"refused documents, with reasons: {summary.rejected}")
    if profile:
        logs.log_or_print(profile_table.table(summary))
    options.print_json(summary.to_dict())
    sys.stdout.flush()
