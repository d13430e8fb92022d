"""The command ``serve``: an HTTP service with a page for queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hybrid_search.cli import options, services
from hybrid_search.serve.options import (
    BODY_KILOBYTES,
    HOST,
    PORT,
    QUERIES,
    TIMEOUT,
    ServeOptions,
    read_token,
)


def serve(
    host: Annotated[
        str, typer.Option(help="The address to listen at; any but loopback needs --token-file.")
    ] = HOST,
    port: Annotated[int, typer.Option(help="The port; 0 takes any free one.")] = PORT,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token that every request must bear."),
    ] = None,
    queries: Annotated[
        int, typer.Option(help="Calls that are answered or wait at once; others get status 429.")
    ] = QUERIES,
    timeout: Annotated[
        float, typer.Option(help="Seconds that a request may take to arrive, and to be answered.")
    ] = TIMEOUT,
    body_kilobytes: Annotated[
        int, typer.Option(help="Largest body of a request, in thousands of bytes.")
    ] = BODY_KILOBYTES,
    log_phrases: Annotated[
        bool, typer.Option("--log-phrases", help="Write the phrases of queries to the log.")
    ] = False,
    judgments: Annotated[
        Path | None,
        typer.Option(help="File that answers to spans, yes or no, are added to."),
    ] = None,
    *,
    place: options.Place,
    log: options.LogOptions,  # noqa: ARG001 (errors are reported by it)
    as_json: options.Json = False,
) -> None:
    """Answer queries over HTTP, and show them on a page in the browser.

    SIGTERM or Ctrl-C ends it, after the requests that run were answered.
    """
    from hybrid_search.async_client import AsyncClient

    server = services.import_server("hybrid_search.serve.server", "serve")
    service_options = ServeOptions(
        host,
        port,
        read_token(token_file),
        queries,
        timeout,
        body_kilobytes,
        log_phrases,
        judgments,
    )
    announce = services.announce_json if as_json else services.announce_page

    def open_client(threads: int) -> AsyncClient:
        return AsyncClient(**place, threads=threads)

    server.serve(service_options, open_client, services.find_place(place["url"]), announce)
