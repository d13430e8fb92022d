"""The commands ``setup``, ``indexes``, ``reindex``, ``delete`` and ``redact``."""

import logging
from collections.abc import Sequence

# The annotations of a table are read at run time, so they are not postponed here.
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from hybrid_search.api import connect
from hybrid_search.cli import ingest_options, options
from hybrid_search.config import DEFAULT_INDEX, DEFAULT_POLICY, Patience
from hybrid_search.errors import DamagedIndexError, HybridSearchError, UsageError
from hybrid_search.observability import logs
from hybrid_search.parameters import Parameter
from hybrid_search.text.residual_codes import DEFAULT_BITS

if TYPE_CHECKING:
    from hybrid_search.client import Client


class ServerSettings(TypedDict, total=False):
    """The settings of an index on a server, given when it is made."""

    analyzer: Annotated[
        str | None, Parameter("Analyzer that cuts texts into terms; the server must have it.")
    ]
    knn_engine: Annotated[
        str | None, Parameter("Library of the vector graph: lucene, or on OpenSearch also faiss.")
    ]
    quantization: Annotated[
        str | None,
        Parameter(
            "How vectors are stored: byte, none, fp16, int8, int4 or binary, if the server can."
        ),
    ]
    graph_dimension: Annotated[
        int | None, Parameter("How many numbers of its vectors the graph has; word codes have all.")
    ]
    m: Annotated[int | None, Parameter("Links of each vector in the graph.")]
    ef_construction: Annotated[
        int | None, Parameter("Vectors that are examined to find these links.")
    ]
    shards: Annotated[int | None, Parameter("Primary shards.")]
    replicas: Annotated[int | None, Parameter("Copies of each shard.")]


class WritingPlace(options.Place, total=False):
    """Where an index is, the model that wrote it, and how long to wait for a server."""

    patience: Patience


def setup(
    index: options.Index = DEFAULT_INDEX,
    policy: Annotated[
        str,
        typer.Option(
            help="Windows whose vectors find passages, LENGTH/STRIDES: 6/2 is windows of 6 words, "
            "half a window apart."
        ),
    ] = DEFAULT_POLICY,
    codes: Annotated[
        int, typer.Option(help="Bits in which a number of a stored vector is kept: 2, 3, 4 or 8.")
    ] = DEFAULT_BITS,
    *,
    settings: ServerSettings,
    place: options.NewPlace,
    as_json: options.Json = False,
) -> None:
    """Make an empty index, unless it exists; the first ingest does the same with the defaults."""
    options.check_lasting(place["url"])
    with connect(**place) as client:
        client.setup(index, policy=policy, codes=codes, options=_drop_unset(settings))
        info = client.describe(index)
    if as_json:
        counts = {"documents": info.documents, "passages": info.passages}
        options.print_json({"index": index, **counts, **asdict(info.spec)})
    else:
        options.print_lines(
            f"index {index!r} is ready, with {info.documents:,} documents, for {info.spec.model}"
        )


def reindex(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files of all documents. Without one the passages on a server are copied."
        ),
    ] = None,
    index: options.Index = DEFAULT_INDEX,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Windows whose vectors find passages, as in 5/1. Default: the index's policy."
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the old version, under its own name.")
    ] = False,
    rejects: options.Rejects = None,
    *,
    settings: ServerSettings,
    reading: ingest_options.Reading,
    place: options.NewPlace,
) -> None:
    """Replace an index by a new version: another policy or model, on a server other options.

    Options that are left out stay as they are. Searches see the old version until the new one is
    complete and counted, and then the new one at once. The last line on standard output is a JSON
    summary.
    """
    from hybrid_search import config
    from hybrid_search.cli.progress import progress
    from hybrid_search.ingest.rejects import default_rejects_path
    from hybrid_search.ingest.sources import files as document_sources
    from hybrid_search.ingest.summary import format_losses, format_summary

    rejects_file = rejects or default_rejects_path(config.settings(place["url"]).url, index)
    read_options = ingest_options.parse_reading(reading)
    document_sources.check(sources or [], rejects_file, read_options)
    lines = document_sources.read(sources, read_options) if sources else None
    with (
        connect(**place) as client,
        progress(document_sources.size(sources) if sources else None) as report,
    ):
        summary = client.reindex(
            index,
            lines,
            rejects=rejects_file,
            policy=policy,
            options=_drop_unset(settings),
            keep=keep,
            report=report,
        )
    options.print_lines(f"{format_summary(summary)}: a new version of index {index!r}", err=True)
    for line in format_losses(summary):
        options.print_lines(line, err=True)
    options.print_json(summary.to_dict())
    if summary.replaced:
        options.exit_with(1)


def delete(
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Ids of documents. Without one --yes deletes the whole index."),
    ] = None,
    index: options.Index = DEFAULT_INDEX,
    yes: Annotated[bool, typer.Option("--yes", help="Delete the whole index.")] = False,
    as_json: options.Json = False,
    *,
    store: options.Store,
) -> None:
    """Delete documents from an index, or with --yes the whole index."""
    if bool(ids) == yes:
        raise UsageError(
            f"give either the ids of documents, or --yes to delete the whole index {index!r}"
        )
    with connect(**store) as client:
        removed = client.delete(ids, index=index) if ids else _count_documents(client, index)
        if yes:
            client.drop(index)
    if as_json:
        options.print_json({"index": index, "deleted": removed})
    else:
        whole_index = f", and index {index!r} with them" if yes else ""
        count = "an unknown number of" if removed is None else f"{removed:,}"
        options.print_lines(f"{count} documents deleted{whole_index}")


def redact(
    spans: Annotated[
        Path,
        typer.Option(
            help='JSON lines of {"id", "start", "end", "type"}, offsets in the document\'s text.'
        ),
    ],
    index: options.Index = DEFAULT_INDEX,
    *,
    place: WritingPlace,
) -> None:
    """Mask spans of documents, and remove what was stored of them before from every file.

    The texts keep their length, terms and vectors are made again without the words, and a server is
    waited for until its segments are merged. Standard output gets the receipt: a JSON object for
    each document, without the words.
    """
    with connect(**place) as client:
        receipts = client.redact(spans, index=index)
    for receipt in receipts:
        options.print_json(receipt.to_dict())
    count = sum(sum(receipt.spans.values()) for receipt in receipts)
    options.print_lines(f"{count:,} spans of {len(receipts):,} documents are masked", err=True)


def _count_documents(client: "Client", index: str) -> int | None:
    """Return the number of documents in an index, None if it is too damaged to tell."""
    try:
        return client.describe(index).documents
    except DamagedIndexError:
        return None


def _drop_unset(settings: ServerSettings) -> dict[str, str]:
    return {name: str(value) for name, value in settings.items() if value is not None}


UNKNOWN = "?"


def indexes(*, store: options.Store, as_json: options.Json = False) -> None:
    """List the indexes: their documents, size on disk, model, and when they were last written."""
    with connect(**store) as client:
        rows = [_describe(client, name) for name in client.indexes()]
    if as_json:
        options.print_json({"indexes": rows})
    elif rows:
        _show(rows)
    else:
        options.print_lines("there is no index yet: hybrid-search ingest FILE makes one")


def _describe(client: "Client", name: str) -> dict[str, Any]:
    """Return the details of an index; only its name if it cannot be read."""
    try:
        return {"name": name, **client.describe(name).to_dict()}
    except HybridSearchError as error:
        logs.log_or_print(f"index {name!r} cannot be described: {error}", logging.WARNING)
        return {"name": name}


def _show(rows: Sequence[dict[str, Any]]) -> None:
    """Print the rows as a table that is never truncated."""
    table = [("index", "documents", "size", "model", "last written"), *map(_format_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    columns = zip("<>><<", widths, strict=True)
    form = "  ".join(f"{{:{side}{width}}}" for side, width in columns)
    for row in table:
        options.print_lines(form.format(*row).rstrip())


def _format_cells(row: dict[str, Any]) -> tuple[str, str, str, str, str]:
    documents, size, written_at = (row.get(key) for key in ("documents", "bytes", "written_at"))
    return (
        row["name"],
        UNKNOWN if documents is None else f"{documents:,}",
        UNKNOWN if size is None else f"{size / 1e6:,.1f} MB",
        row.get("model", UNKNOWN),
        f"{datetime.fromisoformat(written_at):%Y-%m-%d %H:%M} UTC" if written_at else UNKNOWN,
    )
