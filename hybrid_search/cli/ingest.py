"""``ingest``: documents into an index."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hybrid_search import logs
from hybrid_search.cli import inputs, lasting, options, spreading, watching
from hybrid_search.config import DEFAULT_INDEX, settings
from hybrid_search.ingest.summary import Summary
from hybrid_search.logs import Format

SOME_REFUSED = 1


def ingest(
    sources: inputs.Sources = None,
    index: options.Index = DEFAULT_INDEX,
    url: options.Url = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    dimension: options.Dimension = None,
    rejects: inputs.Rejects = None,
    policy: Annotated[str | None, typer.Option(help="Windows whose vectors find passages, as in 6/1. Default: the index's.")] = None,
    sample: inputs.Sample = False,
    columns: inputs.ColumnNames = None,
    where: inputs.Where = None,
    from_index: inputs.FromIndex = None,
    from_url: inputs.FromUrl = None,
    text_field: inputs.TextField = "text",
    id_field: inputs.IdField = "_id",
    follow: inputs.Follow = None,
    retry: inputs.Retry = None,
    checkpoint: lasting.Kept = None,
    patience: lasting.Patience = None,
    shard: spreading.ShardOf = None,
    engine: spreading.EngineName = "local",
    workers: spreading.Workers = None,
    metrics_port: watching.MetricsPort = None,
    metrics_host: watching.MetricsHost = watching.LOOPBACK,
    log_format: watching.LogFormat = Format.text,
    log_level: watching.LogLevel = None,
    profile: watching.Profile = False,
) -> None:
    """Index documents, one JSON object a line: {"id", "text"} or {"id", "turns": [{"speaker", "text", "start_ms"?, "end_ms"?}]}, or one row of a
    table each.

    All other keys are kept as metadata. Unchanged documents are skipped, refused ones go to the rejects file, and the last line on
    standard output is a JSON summary. Exit status: 0, 1 if some documents were refused, 2 if nothing could run. SIGTERM and Ctrl-C end the
    reading: what was read is finished.
    """
    with options.told(log_format, log_level):
        from hybrid_search.api import connect
        from hybrid_search.cli.following import followed
        from hybrid_search.ingest.existing import Existing
        from hybrid_search.ingest.shards import WHOLE, Shard
        from hybrid_search.progress import progress

        inputs.check_one(sources, sample=sample, from_index=from_index, follow=follow, retry=retry)
        lasting.check(checkpoint, retry=retry, from_index=from_index, follow=follow)
        named, wanted, part = inputs.columns(columns), options.conditions(where), Shard.parse(shard) if shard else WHOLE
        file = rejects or Path(f"{part.named(index)}.rejected.jsonl")
        opened = connect(url, model=model, device=device, dimension=dimension, precision=precision, patience=patience)
        with opened as client, watching.watched(metrics_port, metrics_host) as seen:
            run = partial(client.ingest_lines, index=index, policy=policy, where=wanted, shard=part, engine=engine, workers=workers)
            if follow:
                summary = followed(run, follow, named, rejects, seen)
            else:
                existing = Existing(from_index, text_field, id_field, wanted or {}) if from_index else None
                with inputs.opened(sources, sample, named, file, existing, from_url, url, retry) as given, progress(given.size) as shown:
                    kept = lasting.kept(checkpoint, given.files, settings(url).url, index, named, wanted, part)
                    summary = lasting.lasting(partial(run, report=watching.both(seen, shown)), given.lines, file, retry, kept)
        _tell(summary, index, profile=profile)
        raise typer.Exit(SOME_REFUSED if summary.rejected and not follow else 0)


def _tell(summary: Summary, index: str, *, profile: bool) -> None:
    """What was done, for people and then for programs."""
    from hybrid_search.ingest import stages
    from hybrid_search.progress import said

    logs.tell(f"{said(summary)}, in {summary.seconds:.1f} s into index {index!r}", extra=summary.to_dict())
    if summary.rejected:
        logs.tell(f"refused documents, with reasons: {summary.rejected}")
    if profile:
        logs.tell(stages.table(summary))
    options.print_json(summary.to_dict())
    sys.stdout.flush()
