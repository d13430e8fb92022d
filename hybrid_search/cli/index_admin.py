"""The commands ``setup``, ``reindex`` and ``delete``: make, replace and remove indexes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid_search.cli import ingest_options, options
from hybrid_search.config import DEFAULT_INDEX, DEFAULT_POLICY
from hybrid_search.errors import DamagedIndexError, UsageError
from hybrid_search.text.residual_codes import DEFAULT_BITS

if TYPE_CHECKING:
    from hybrid_search.client import Client

Analyzer = Annotated[
    str | None, typer.Option(help="Analyzer that cuts texts into terms; the server must have it.")
]
KnnEngine = Annotated[
    str | None,
    typer.Option(help="Library of the vector graph: lucene, or on OpenSearch also faiss."),
]
Quantization = Annotated[
    str | None,
    typer.Option(
        help="How vectors are stored: byte, none, fp16, int8, int4 or binary, if the server can."
    ),
]
M = Annotated[int | None, typer.Option(help="Links of each vector in the graph.")]
GraphDimension = Annotated[
    int | None,
    typer.Option(help="How many numbers of its vectors the graph has; word codes have all."),
]
EfConstruction = Annotated[
    int | None, typer.Option(help="Vectors that are examined to find these links.")
]
Shards = Annotated[int | None, typer.Option(help="Primary shards.")]
Replicas = Annotated[int | None, typer.Option(help="Copies of each shard.")]


def setup(
    index: options.Index = DEFAULT_INDEX,
    url: options.Url = None,
    policy: Annotated[
        str,
        typer.Option(
            help="Windows whose vectors find passages, LENGTH/STRIDES: 6/2 is windows of 6 words, "
            "half a window apart."
        ),
    ] = DEFAULT_POLICY,
    codes: Annotated[
        int,
        typer.Option(help="Bits in which a number of a stored vector is kept: 2, 3, 4 or 8."),
    ] = DEFAULT_BITS,
    analyzer: Analyzer = None,
    knn_engine: KnnEngine = None,
    quantization: Quantization = None,
    graph_dimension: GraphDimension = None,
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
    """Make an empty index, unless it exists; the first ingest does the same with the defaults."""
    index_options = _drop_unset(
        analyzer=analyzer,
        knn_engine=knn_engine,
        quantization=quantization,
        graph_dimension=graph_dimension,
        m=m,
        ef_construction=ef_construction,
    )
    with options.report_errors():
        from hybrid_search.api import connect

        options.check_lasting(url)
        with connect(
            url, model=model, device=device, dimension=dimension, precision=precision
        ) as client:
            client.setup(
                index,
                policy=policy,
                codes=codes,
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
            options.print_lines(
                f"index {index!r} is ready, with {info.documents:,} documents, "
                f"for {info.spec.model}"
            )


def reindex(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files of all documents. Without one the passages are copied as they are."
        ),
    ] = None,
    index: options.Index = DEFAULT_INDEX,
    url: options.Url = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Windows whose vectors find passages, as in 5/1. Default: the index's policy."
        ),
    ] = None,
    analyzer: Analyzer = None,
    knn_engine: KnnEngine = None,
    quantization: Quantization = None,
    graph_dimension: GraphDimension = None,
    m: M = None,
    ef_construction: EfConstruction = None,
    shards: Shards = None,
    replicas: Replicas = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the old version, under its own name.")
    ] = False,
    columns: ingest_options.ColumnNames = None,
    rows: ingest_options.RowKind = "document",
    format: ingest_options.FormatName = None,
    encoding: ingest_options.EncodingName = None,
    split_speakers: ingest_options.SplitSpeakers = False,
    rejects: Annotated[
        Path | None, typer.Option(help="File for refused documents. Default: INDEX.rejected.jsonl")
    ] = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    dimension: options.Dimension = None,
) -> None:
    """Replace an index by a new version: another policy or model, on a server other options.

    Options that are left out stay as they are. Searches see the old version until the new one is
    complete and counted, and then the new one at once. The last line on standard output is a JSON
    summary.
    """
    index_options = _drop_unset(
        analyzer=analyzer,
        knn_engine=knn_engine,
        quantization=quantization,
        graph_dimension=graph_dimension,
        m=m,
        ef_construction=ef_construction,
    )
    index_options |= _drop_unset(shards=shards, replicas=replicas)
    with options.report_errors():
        from hybrid_search.api import connect
        from hybrid_search.cli.progress import progress
        from hybrid_search.config import settings
        from hybrid_search.ingest.rejects import default_rejects_path
        from hybrid_search.ingest.sources import files as document_sources
        from hybrid_search.ingest.summary import format_losses, format_summary

        rejects_file = rejects or default_rejects_path(settings(url).url, index)
        read_options = ingest_options.parse_read_options(
            columns, rows, format, encoding, split_speakers=split_speakers
        )
        document_sources.check(sources or [], rejects_file, read_options)
        lines = document_sources.read(sources, read_options) if sources else None
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
        options.print_lines(
            f"{format_summary(summary)}: a new version of index {index!r}", err=True
        )
        for line in format_losses(summary):
            options.print_lines(line, err=True)
        options.print_json(summary.to_dict())
    options.exit_with(1 if summary.replaced else 0)


def delete(
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Ids of documents. Without one --yes deletes the whole index."),
    ] = None,
    index: options.Index = DEFAULT_INDEX,
    url: options.Url = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete the whole index.")] = False,
    as_json: options.Json = False,
) -> None:
    """Delete documents from an index, or with --yes the whole index."""
    with options.report_errors():
        from hybrid_search.api import connect

        if bool(ids) == yes:
            raise UsageError(
                f"give either the ids of documents, or --yes to delete the whole index {index!r}"
            )
        with connect(url) as client:
            removed = client.delete(ids, index=index) if ids else _count_documents(client, index)
            if yes:
                client.drop(index)
        if as_json:
            options.print_json({"index": index, "deleted": removed})
        else:
            whole_index = f", and index {index!r} with them" if yes else ""
            count = "an unknown number of" if removed is None else f"{removed:,}"
            options.print_lines(f"{count} documents deleted{whole_index}")


def _count_documents(client: Client, index: str) -> int | None:
    """Return the number of documents in an index, None if it is too damaged to tell."""
    try:
        return client.describe(index).documents
    except DamagedIndexError:
        return None


def _drop_unset(**values: str | int | None) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None}
