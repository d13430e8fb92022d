"""The commands that run a service: ``serve``, over HTTP with a page, and ``mcp``, for agents."""

from __future__ import annotations

import os
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from hybrid_search.cli import options
from hybrid_search.errors import MissingExtraError
from hybrid_search.serve.options import (
    BODY_KILOBYTES,
    HOST,
    PORT,
    QUERIES,
    TIMEOUT,
    ServeOptions,
    read_token,
)
from hybrid_search.system import install_command


def import_server(name: str, extra: str) -> ModuleType:
    """Return the module `name` of a service, whose libraries are in `extra`.

    Raises:
        MissingExtraError: If one of them is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        raise MissingExtraError(
            f"{extra} needs the package {missing.name}: {install_command(extra)}"
        ) from missing


def announce(address: str, *, as_json: bool = True) -> None:
    """Print the address of a service, and flush it in case of a pipe."""
    if as_json:
        options.print_json({"url": address, "pid": os.getpid()})
    else:
        options.print_lines(f"open {address} in a browser; Ctrl-C ends the service")
    sys.stdout.flush()


def serve(
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen at; any but loopback needs --token-file.", metavar="HOST"
        ),
    ] = HOST,
    port: Annotated[int, typer.Option(help="The port; 0 takes any free one.")] = PORT,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token that every request must bear.")
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
    judgments: Annotated[
        Path | None, typer.Option(help="File that answers to spans, yes or no, are added to.")
    ] = None,
    *,
    place: options.Place,
    log: options.LogOptions,  # noqa: ARG001 (errors are reported by it)
    as_json: options.Json = False,
) -> None:
    """Answer queries over HTTP, and show them on a page in the browser.

    SIGTERM or Ctrl-C ends it, after the requests that run were answered.
    """
    server = import_server("hybrid_search.serve.server", "serve")
    service_options = ServeOptions(
        host, port, read_token(token_file), queries, timeout, body_kilobytes, judgments
    )
    server.serve(service_options, place, partial(announce, as_json=as_json))


def mcp(
    http: Annotated[
        bool,
        typer.Option(
            "--http", help="Answer over HTTP on this machine, in place of standard output."
        ),
    ] = False,
    port: Annotated[int, typer.Option(help="The port with --http; 0 takes any free one.")] = PORT,
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
    server = import_server("hybrid_search.agents.server", "mcp")
    service_options = ServeOptions(port=port, timeout=timeout)
    if http:
        server.serve_http(service_options, place, announce)
    else:
        server.serve_stdio(service_options, place)
