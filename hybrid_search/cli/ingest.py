"""``ingest``: documents into an index."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hybrid_search.cli import options
from hybrid_search.config import DEFAULT_INDEX, settings
from hybrid_search.errors import UsageError

SOME_REFUSED = 1


def ingest(
    sources: Annotated[list[str] | None, typer.Argument(help="JSONL files, .gz too; - for standard input. None: the bundled sample.")] = None,
    index: options.Index = DEFAULT_INDEX,
    url: options.Url = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    dimension: options.Dimension = None,
    rejects: Annotated[
        Path | None, typer.Option(help="File for refused documents. Default: INDEX.rejected.jsonl; of a shard INDEX.I-of-N.rejected.jsonl")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="Windows whose vectors find passages, as in 6/1. Default: the index's.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Ingest the bundled sample, which on a server has to be asked for.")] = False,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Take the documents of shard I of N, from 0/N to N-1/N, by the hash of their ids: for N processes that write to one server. "
            "An embedded index takes one writer at a time: there shards run one after the other.",
        ),
    ] = None,
    engine: Annotated[str, typer.Option(help="Where texts are encoded: local, or ray: by actors of a Ray cluster.")] = "local",
    workers: Annotated[int | None, typer.Option(help="Actors of --engine ray. Default: one a GPU of the cluster, else one a core.", min=1)] = None,
) -> None:
    """Index documents, one JSON object a line: {"id", "text"} or {"id", "turns": [{"speaker", "text", "start_ms"?, "end_ms"?}]}.

    All other keys are kept as metadata. Unchanged documents are skipped, refused ones go to the rejects file, and the last line on
    standard output is a JSON summary. Exit status: 0, 1 if some documents were refused, 2 if nothing could run.
    """
    with options.told():
        from hybrid_search.api import connect
        from hybrid_search.ingest import sources as reading
        from hybrid_search.ingest.shards import WHOLE, Shard
        from hybrid_search.progress import progress, said

        chosen = sources or _sample(url, asked=sample)
        if sources and sample:
            raise UsageError(f"both --sample and sources ({', '.join(sources)}): give one of them")
        part = Shard.parse(shard) if shard else WHOLE
        refused = rejects or Path(part.named(index) + ".rejected.jsonl")
        reading.check(chosen, refused)
        opened = connect(url, model=model, device=device, dimension=dimension, precision=precision)
        with opened as client, progress(reading.size(chosen)) as report:
            summary = client.ingest_lines(
                reading.read(chosen), index=index, rejects=refused, policy=policy, report=report, shard=part, engine=engine, workers=workers
            )
        typer.echo(f"{said(summary)}, in {summary.seconds:.1f} s into index {index!r}", err=True)
        if summary.rejected:
            typer.echo(f"refused documents, with reasons: {summary.rejected}", err=True)
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
        typer.echo("no source given: ingesting the bundled sample of 88 calls", err=True)
    return [str(SAMPLE)]
