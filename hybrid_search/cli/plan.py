"""The command ``plan``: estimate what indexing takes before it is done."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from hybrid_search.cli import ingest_options, options
from hybrid_search.maintenance.plan.estimate import Plan


def plan(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files as for ingest, - for standard input. Default: the bundled sample."
        ),
    ] = None,
    columns: ingest_options.ColumnNames = None,
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
            help="Windows whose vectors find passages. Default: the policy of --index, else 6/1."
        ),
    ] = None,
    url: options.Url = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    dimension: options.Dimension = None,
    as_json: options.Json = False,
) -> None:
    """Estimate bytes, hours and shards for a number of documents from a sample of them.

    Up to 1,000 documents from the beginning of the sources, or as many as are encoded in 15
    seconds, are the sample. Span policies are compared on it. Nothing is written.
    """
    with options.report_errors():
        from hybrid_search.api import connect
        from hybrid_search.ingest.sources import files as document_sources

        source_files = sources or [str(document_sources.SAMPLE)]
        column_map = ingest_options.parse_columns(columns)
        document_sources.check(source_files, columns=column_map)
        with connect(
            url, model=model, device=device, dimension=dimension, precision=precision
        ) as client:
            estimate = client.plan_lines(
                document_sources.read(source_files, column_map),
                documents=documents,
                index=index,
                policy=policy,
            )
        if as_json:
            options.print_json(estimate.to_dict())
        else:
            _show(estimate)


def _show(estimate: Plan) -> None:
    console, load, hours = options.Output(), estimate.load, estimate.hours
    sample = estimate.sample
    console.print(
        f"sample: {sample.documents:,} documents, {sample.tokens:,} tokens, "
        f"{estimate.tokens_a_second:,.0f} tokens/s on this machine"
    )
    if estimate.skipped:
        console.print(f"{estimate.skipped:,} lines were left out: they are not valid documents")
    rows = {
        "tokens": f"{load.tokens:,}",
        "passages": f"{load.passages:,}",
        "covering spans": f"{load.spans:,} vectors of {estimate.dimension} dimensions, "
        f"policy {estimate.policy}",
        "embedded index": f"{load.embedded_bytes / 1e9:,.2f} GB",
        "server": f"{load.server_bytes / 1e9:,.2f} GB without replicas, {estimate.shards:,} "
        "primary shards of 50 GiB at most",
        "encoder alone, here": f"{hours.encoder:,.2f} h",
        "ingest, embedded, here": f"{hours.embedded:,.2f} h",
        "one server of two cores": f"{hours.server:,.2f} h to write the vectors",
        "GPU": f"{hours.gpu[0]:,.2f} to {hours.gpu[1]:,.2f} h",
    }
    table = Table(
        title=f"{load.documents:,} documents", show_header=False, box=None, title_justify="left"
    )
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)
    _show_policies(estimate)


def _show_policies(estimate: Plan) -> None:
    depth = estimate.policies[0].window
    table = Table(
        "policy",
        "vectors a word",
        "bytes per 1,000 words",
        "recall@10",
        f"recall@10, best {depth} scored exactly",
        box=None,
    )
    for policy in estimate.policies:
        table.add_row(
            policy.policy,
            f"{policy.vectors_a_word:.3f}",
            f"{estimate.bytes_per_1000_words(policy):,}",
            f"{policy.recall:.3f}",
            f"{policy.scored:.3f}",
        )
    options.Output().print(table)
