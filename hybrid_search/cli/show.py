"""The command ``show``: print a document, with the spans of a phrase marked."""

from __future__ import annotations

from typing import Annotated

import typer

from hybrid_search.cli import options
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.search.query import DOCUMENT_SPANS


def show(
    document_id: Annotated[
        str, typer.Argument(metavar="ID", help="The id of the document, as a hit has it.")
    ],
    index: options.Index = DEFAULT_INDEX,
    phrase: Annotated[
        str | None, typer.Option(help="A phrase, whose best spans are marked.")
    ] = None,
    spans: Annotated[int, typer.Option(help="Spans to mark.")] = DOCUMENT_SPANS,
    *,
    place: options.Place,
    as_json: options.Json = False,
) -> None:
    """Show a document: its metadata, and its turns with their speakers and times."""
    from hybrid_search.api import connect
    from hybrid_search.cli.show_result import show_document

    with connect(**place) as client:
        view = client.open_document(document_id, phrase, index=index, spans=spans)
    if as_json:
        options.print_json(view.to_dict())
    else:
        show_document(view)
