"""``ingest``: documents into an index."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hybrid_search import logs
from hybrid_search.cli import options, watching
from hybrid_search.config import DEFAULT_INDEX, settings
from hybrid_search.errors import UsageError
from hybrid_search.logs import Format

SOME_REFUSED = 1


def ingest(
    sources: Annotated[list[str] | None, typer.Argument(help="JSONL files, .gz too; - for standard input. None: the bundled sample.")] = None,
    index: options.Index = DEFAULT_INDEX,
    url: options.Url = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    dimension: options.Dimension = None,
    rejects: Annotated[Path | None, typer.Option(help="File for refused documents. Default: INDEX.rejected.jsonl")] = None,
    policy: Annotated[str | None, typer.Option(help="Windows whose vectors find passages, as in 6/1. Default: the index's.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Ingest the bundled sample, which on a server has to be asked for.")] = False,
    metrics_port: watching.MetricsPort = None,
    metrics_host: watching.MetricsHost = watching.LOOPBACK,
    log_format: watching.LogFormat = Format.text,
    log_level: watching.LogLevel = None,
    profile: watching.Profile = False,
) -> None:
    """Index documents, one JSON object a line: {"id", "text"} or {"id", "turns": [{"speaker", "text", "start_ms"?, "end_ms"?}]}.

    All other keys are kept as metadata. Unchanged documents are skipped, refused ones go to the rejects file, and the last line on
    standard output is a JSON summary. Exit status: 0, 1 if some documents were refused, 2 if nothing could run.
    """
    with options.told(log_format, log_level):
        from hybrid_search.api import connect
        from hybrid_search.ingest import sources as reading
        from hybrid_search.ingest import stages
        from hybrid_search.progress import progress, said

        chosen = sources or _sample(url, asked=sample)
        if sources and sample:
            raise UsageError(f"both --sample and sources ({', '.join(sources)}): give one of them")
        refused = rejects or Path(f"{index}.rejected.jsonl")
        reading.check(chosen, refused)
        opened = connect(url, model=model, device=device, dimension=dimension, precision=precision)
        with opened as client, progress(reading.size(chosen)) as shown, watching.watched(shown, metrics_port, metrics_host) as report:
            summary = client.ingest_lines(reading.read(chosen), index=index, rejects=refused, policy=policy, report=report)
        logs.tell(f"{said(summary)}, in {summary.seconds:.1f} s into index {index!r}", extra=summary.to_dict())
        if summary.rejected:
            logs.tell(f"refused documents, with reasons: {summary.rejected}")
        if profile:
            logs.tell(stages.table(summary))
        options.print_json(summary.to_dict())
        sys.stdout.flush()
        raise typer.Exit(SOME_REFUSED if summary.failed else 0)


def _sample(url: str | None, *, asked: bool) -> list[str]:
    """The bundled sample as the source; said where nobody asked for it. Raises UsageError on a server, where it would stand among real documents."""
    from hybrid_search.ingest.sources import SAMPLE

    scheme = settings(url).url.partition(":")[0]
    if not asked and scheme.endswith(("http", "https")):
        raise UsageError("no source given: name the files to ingest (- for standard input), or give --sample for the bundled calls")
    if not asked:
        logs.tell("no source given: ingesting the bundled sample of 88 calls")
    return [str(SAMPLE)]
