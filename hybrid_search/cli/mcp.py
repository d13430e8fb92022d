"""The command ``mcp``: tools for agents over the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from hybrid_search.cli import options, services
from hybrid_search.serve.options import PORT, QUERIES, TIMEOUT, ServeOptions


def mcp(
    http: Annotated[
        bool,
        typer.Option(
            "--http", help="Answer over HTTP on this machine, in place of standard output."
        ),
    ] = False,
    port: Annotated[int, typer.Option(help="The port with --http; 0 takes any free one.")] = PORT,
    queries: Annotated[
        int, typer.Option(help="Calls that are answered or wait at once; others are refused.")
    ] = QUERIES,
    timeout: Annotated[
        float, typer.Option(help="Seconds that an answer may take to be found.")
    ] = TIMEOUT,
    *,
    place: options.Place,
    log: options.LogOptions,  # noqa: ARG001 (errors are reported by it)
) -> None:
    """Offer the indexes as tools to an agent, which may only read them.

    An agent starts this command and talks to it by standard input and output. With --http it is a
    service of its own, until SIGTERM or Ctrl-C.
    """
    from hybrid_search.async_client import THREADS, AsyncClient

    server = services.import_server("hybrid_search.agents.server", "mcp")
    service_options = ServeOptions(port=port, queries=queries, timeout=timeout)
    hidden = services.find_place(place["url"])

    def open_client(threads: int) -> AsyncClient:
        return AsyncClient(**place, threads=min(THREADS, threads))

    if http:
        server.serve_http(service_options, open_client, hidden, services.announce_json)
    else:
        server.serve_stdio(service_options, open_client, hidden)
