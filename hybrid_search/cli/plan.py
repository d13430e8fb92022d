"""The command ``plan``: estimate the cost of indexing beforehand."""

from __future__ import annotations

from typing import Annotated

import typer

from hybrid_search.cli import ingest_options, options


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
    seconds, are the sample. Span policies are compared on it. Nothing is written.
    """
    from hybrid_search.api import connect
    from hybrid_search.cli.show_plan import show_plan
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
        show_plan(estimate)
