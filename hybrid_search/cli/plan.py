"""The command ``plan``: estimate the cost of indexing beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hybrid_search.api import connect
from hybrid_search.cli import ingest_options, options

if TYPE_CHECKING:
    from hybrid_search.maintenance.plan import Plan


def plan(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files as for ingest, - for standard input. Default: the bundled sample."
        ),
    ] = None,
    documents: Annotated[
        int | None,
        typer.Option(
            help="Documents to plan for. Default: those of --index, else those of the sample.",
            min=1,
        ),
    ] = None,
    index: Annotated[
        str | None,
        typer.Option(help="An index whose policy, dimension and number of documents are used."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Windows whose vectors find passages. Default: the policy of --index, else 5/1."
        ),
    ] = None,
    *,
    reading: ingest_options.Reading,
    place: options.NewPlace,
    as_json: options.Json = False,
) -> None:
    """Estimate bytes, hours and shards for a number of documents from a sample of them.

    Up to 1,000 documents from the beginning of the sources, or as many as are encoded in 15
    seconds, are the sample. Nothing is written.
    """
    from hybrid_search.ingest.sources import files as document_sources

    source_files = sources or [str(document_sources.SAMPLE)]
    read_options = ingest_options.parse_reading(reading)
    document_sources.check(source_files, options=read_options)
    with connect(**place) as client:
        estimate = client.plan_lines(
            document_sources.read(source_files, read_options),
            documents=documents,
            index=index,
            policy=policy,
        )
    if as_json:
        options.print_json(estimate.to_dict())
    else:
        _show(estimate)


def _show(estimate: Plan) -> None:
    sample, load, hours = estimate.sample, estimate.load, estimate.hours
    options.print_lines(
        f"sample: {sample.documents:,} documents, {sample.tokens:,} tokens, "
        f"{estimate.tokens_a_second:,.0f} tokens/s on this machine"
    )
    if estimate.skipped:
        options.print_lines(
            f"{estimate.skipped:,} lines were left out: they are not valid documents"
        )
    rows = {
        "tokens": f"{load.tokens:,}",
        "passages": f"{load.passages:,}",
        "covering spans": f"{load.spans:,} vectors of {estimate.graph_dimension} dimensions, "
        f"policy {estimate.policy}",
        "embedded index": f"{load.embedded_bytes / 1e9:,.2f} GB",
        "server": f"{load.server_bytes / 1e9:,.2f} GB without replicas, {estimate.shards:,} "
        "primary shards of 50 GiB at most",
        "encoder alone, here": f"{hours.encoder:,.2f} h",
        "ingest, embedded, here": f"{hours.embedded:,.2f} h",
        "one server of two cores": f"{hours.server:,.2f} h to write the vectors",
    }
    options.print_lines(f"{load.documents:,} documents")
    for name, value in rows.items():
        options.print_lines(f"{name:<24}{value}")
