"""The command ``mcp``: the tools for agents, by the Model Context Protocol."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Annotated

import typer

from hybrid_search import config
from hybrid_search.cli import options
from hybrid_search.errors import MissingExtraError
from hybrid_search.observability import logs
from hybrid_search.serve.options import PORT, QUERIES, TIMEOUT, ServeOptions
from hybrid_search.system import install_command


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
    log_format: Annotated[
        logs.Format, typer.Option(help="text, or json: each line a JSON object.")
    ] = logs.Format.text,
    log_level: Annotated[
        logs.Level | None, typer.Option(help="Lowest level that is logged.")
    ] = None,
) -> None:
    """Offer the indexes as tools to an agent, which may only read them.

    An agent starts this command and talks to it by standard input and output. With --http it is a
    service of its own, until SIGTERM or Ctrl-C.
    """
    with options.report_errors(log_format, log_level):
        from hybrid_search.async_client import THREADS, AsyncClient

        server = _import_server()
        service_options = ServeOptions(port=port, queries=queries, timeout=timeout)
        place = config.settings(url).url.partition(":")[2]

        def open_client(threads: int) -> AsyncClient:
            return AsyncClient(
                url,
                model=model,
                device=device,
                precision=precision,
                threads=min(THREADS, threads),
            )

        if http:
            server.serve_http(service_options, open_client, place, _announce)
        else:
            server.serve_stdio(service_options, open_client, place)


def _import_server() -> ModuleType:
    """Return the module that speaks the protocol.

    Raises:
        MissingExtraError: If its libraries are not installed.
    """
    try:
        from hybrid_search.agents import server
    except ModuleNotFoundError as missing:
        raise MissingExtraError(
            f"mcp needs the package {missing.name}: {install_command('mcp')}"
        ) from missing
    return server


def _announce(address: str) -> None:
    """Tell where the tools are, at once also where standard output is a pipe."""
    options.print_json({"url": address, "pid": os.getpid()})
    sys.stdout.flush()
