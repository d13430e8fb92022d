"""The command ``mcp``: tools for agents over the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from hybrid_search.cli import options, services
from hybrid_search.observability import logs
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
    url: options.Url = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    log_format: options.LogFormat = logs.Format.text,
    log_level: options.LogLevel = None,
) -> None:
    """Offer the indexes as tools to an agent, which may only read them.

    An agent starts this command and talks to it by standard input and output. With --http it is a
    service of its own, until SIGTERM or Ctrl-C.
    """
    with options.report_errors(log_format, log_level):
        from hybrid_search.async_client import THREADS, AsyncClient

        server = services.import_server("hybrid_search.agents.server", "mcp")
        service_options = ServeOptions(port=port, queries=queries, timeout=timeout)
        place = services.find_place(url)

        def open_client(threads: int) -> AsyncClient:
            return AsyncClient(
                url,
                model=model,
                device=device,
                precision=precision,
                threads=min(THREADS, threads),
            )

        if http:
            server.serve_http(service_options, open_client, place, services.announce_json)
        else:
            server.serve_stdio(service_options, open_client, place)
