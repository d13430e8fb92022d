"""The command ``attach``: spans for an index of another program, which stays as it is."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from hybrid_search.api import connect
from hybrid_search.cli import options
from hybrid_search.errors import UsageError


def attach(
    index: options.Index,
    text: Annotated[
        str | None,
        typer.Option(
            help="The field of the text, as in transcript, or of a turn's, as in "
            "turns=utterances.text.",
            metavar="FIELD",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="KEY=NAME,...: the keys of speaker, start and end in a turn.", metavar="KEY=NAME"
        ),
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option(
            help="The query for the words of a phrase, as JSON with {{phrase}} in it. Default: a "
            "match on the text.",
        ),
    ] = None,
    sync: Annotated[
        bool, typer.Option("--sync", help="Follow an index that is attached already.")
    ] = False,
    policy: Annotated[
        str | None, typer.Option(help="Windows whose vectors find passages, as in 5/1.")
    ] = None,
    codes: Annotated[
        int | None, typer.Option(help="Bits of a number of a stored vector: 2, 3, 4 or 8.")
    ] = None,
    rejects: options.Rejects = None,
    *,
    place: options.NewPlace,
) -> None:
    """Make spans for an index of another program on a server, or bring them up to date.

    That index stays as it is; its spans are in INDEX.spans, without a word of its texts. Queries
    name the index itself. The last line on standard output is a JSON summary. Exit status: 0; 1 if
    documents were refused.
    """
    from hybrid_search.cli.progress import progress
    from hybrid_search.ingest.sources.read_options import parse_columns
    from hybrid_search.ingest.summary import format_losses, format_summary

    _check_choice(text, sync=sync)
    with connect(**place) as client, progress(None) as report:
        summary = client.attach(
            index,
            text,
            columns=parse_columns(columns) if columns else None,
            template=_read_template(template) if template else None,
            policy=policy,
            codes=codes,
            rejects=rejects,
            report=report,
        )
    removed = f"{format_summary(summary)}, {summary.deleted:,} removed"
    options.print_lines(f"{removed}: index {index!r} has spans", err=True)
    for line in format_losses(summary):
        options.print_lines(line, err=True)
    options.print_json(summary.to_dict())
    if summary.failed:
        options.exit_with(1)


def _check_choice(text: str | None, *, sync: bool) -> None:
    """Raise UsageError if it is not said where the text is."""
    if text is None and not sync:
        raise UsageError(
            "say where the text is, as in --text transcript; or give --sync for an index that is "
            "attached already"
        )


def _read_template(file: Path) -> dict[str, Any]:
    """Return the query in a file.

    Raises:
        UsageError: If it is not there, or no object of JSON.
    """
    try:
        template = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"template {file} cannot be read as JSON: {error}") from error
    if not isinstance(template, dict):
        raise UsageError(f"template {file} is no object: give the value of query in a search")
    return template
