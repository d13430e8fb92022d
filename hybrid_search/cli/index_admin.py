"""``setup``, ``reindex`` and ``delete``: indexes and documents, made, made anew and removed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hybrid_search.cli import ingest_options, options
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.errors import UsageError
from hybrid_search.text.window_policy import DEFAULT_POLICY

Analyzer = Annotated[
    str | None, typer.Option(help="What cuts the text into terms: one that the server has.")
]
KnnEngine = Annotated[str | None, typer.Option(help="lucene, or on OpenSearch faiss.")]
Quantization = Annotated[
    str | None,
    typer.Option(
        help="How vectors are kept: none, fp16, int8, int4 or binary, where the server has it."
    ),
]
M = Annotated[int | None, typer.Option(help="Links of a vector in the graph.")]
EfConstruction = Annotated[int | None, typer.Option(help="Vectors looked at for these links.")]
Shards = Annotated[int | None, typer.Option(help="Primary shards.")]
Replicas = Annotated[int | None, typer.Option(help="Copies of each shard.")]


def setup(
    index: options.Index = DEFAULT_INDEX,
    url: options.Url = None,
    policy: Annotated[
        str, typer.Option(help="Windows whose vectors find passages: words / strides a window.")
    ] = DEFAULT_POLICY,
    analyzer: Analyzer = None,
    knn_engine: KnnEngine = None,
    quantization: Quantization = None,
    m: M = None,
    ef_construction: EfConstruction = None,
    shards: Shards = None,
    replicas: Replicas = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    dimension: options.Dimension = None,
    as_json: options.Json = False,
) -> None:
    """Make an empty index, if there is none. The first ingest does the same with the defaults."""
    index_options = _drop_unset(
        analyzer=analyzer,
        knn_engine=knn_engine,
        quantization=quantization,
        m=m,
        ef_construction=ef_construction,
    )
    with options.report_errors():
        from hybrid_search.api import connect

        with connect(
            url, model=model, device=device, dimension=dimension, precision=precision
        ) as client:
            client.setup(
                index,
                policy=policy,
                options=index_options | _drop_unset(shards=shards, replicas=replicas),
            )
            info = client.describe(index)
        if as_json:
            options.print_json(
                {
                    "index": index,
                    "documents": info.documents,
                    "passages": info.passages,
                    **asdict(info.spec),
                }
            )
        else:
            typer.echo(
                f"index {index!r} is there, with {info.documents:,} documents, for {info.spec.model}"
            )


def reindex(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="JSONL files of all documents. None: the passages are copied as they are."
        ),
    ] = None,
    index: options.Index = DEFAULT_INDEX,
    url: options.Url = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Windows whose vectors find passages, as in 6/1. Default: those of the index."
        ),
    ] = None,
    analyzer: Analyzer = None,
    knn_engine: KnnEngine = None,
    quantization: Quantization = None,
    m: M = None,
    ef_construction: EfConstruction = None,
    shards: Shards = None,
    replicas: Replicas = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the old version.")] = False,
    columns: ingest_options.ColumnNames = None,
    rejects: Annotated[
        Path | None, typer.Option(help="File for refused documents. Default: INDEX.rejected.jsonl")
    ] = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    dimension: options.Dimension = None,
) -> None:
    """Put a new version of an index on a server in the place of the old one, at once: other
    options, another policy, another model.

    What is not given stays as it is. Nothing changes for those who search until all is there and
    counted. The last line on standard output is a JSON summary.
    """
    index_options = _drop_unset(
        analyzer=analyzer,
        knn_engine=knn_engine,
        quantization=quantization,
        m=m,
        ef_construction=ef_construction,
    )
    index_options |= _drop_unset(shards=shards, replicas=replicas)
    with options.report_errors():
        from hybrid_search.api import connect
        from hybrid_search.cli.progress import progress
        from hybrid_search.ingest.rejects import default_rejects_path
        from hybrid_search.ingest.sources import files as document_sources
        from hybrid_search.ingest.summary import format_summary

        rejects_file, column_map = (
            rejects or default_rejects_path(index),
            ingest_options.parse_columns(columns),
        )
        document_sources.check(sources or [], rejects_file, column_map)
        lines = document_sources.read(sources, column_map) if sources else None
        connection = connect(
            url, model=model, device=device, dimension=dimension, precision=precision
        )
        with (
            connection as client,
            progress(document_sources.size(sources) if sources else None) as report,
        ):
            summary = client.reindex(
                index,
                lines,
                rejects=rejects_file,
                policy=policy,
                options=index_options,
                keep=keep,
                report=report,
            )
        typer.echo(f"{format_summary(summary)}: a new version of index {index!r}", err=True)
        options.print_json(summary.to_dict())


def delete(
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Ids of documents. None: the whole index, with --yes."),
    ] = None,
    index: options.Index = DEFAULT_INDEX,
    url: options.Url = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete the whole index.")] = False,
    as_json: options.Json = False,
) -> None:
    """Remove documents from an index, or with --yes the index and all in it."""
    with options.report_errors():
        from hybrid_search.api import connect

        if bool(ids) == yes:
            raise UsageError(
                f"give the ids of documents, or --yes to delete the whole index {index!r}; not both, not neither"
            )
        with connect(url) as client:
            removed = client.delete(ids, index=index) if ids else client.describe(index).documents
            if yes:
                client.drop(index)
        if as_json:
            options.print_json({"index": index, "deleted": removed})
        else:
            typer.echo(
                f"{removed:,} documents deleted"
                + (f", and index {index!r} with them" if yes else "")
            )


def _drop_unset(**values: str | int | None) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None}
