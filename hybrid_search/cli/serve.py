"""The command ``serve``: answer queries over HTTP, and show them on a page."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from hybrid_search import config
from hybrid_search.cli import options
from hybrid_search.errors import MissingExtraError
from hybrid_search.observability import logs
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
    as_json: options.Json = False,
) -> None:
    """Answer queries over HTTP, and show them on a page in the browser.

    SIGTERM or Ctrl-C ends it, after the requests that run were answered.
    """
    with options.report_errors(log_format, log_level):
        from hybrid_search.async_client import AsyncClient

        server = _import_server()
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
        place = config.settings(url).url.partition(":")[2]

        def open_client(threads: int) -> AsyncClient:
            return AsyncClient(
                url, model=model, device=device, precision=precision, threads=threads
            )

        server.serve(service_options, open_client, place, partial(_announce, as_json))


def _import_server() -> ModuleType:
    """Return the module that runs the service.

    Raises:
        MissingExtraError: If its libraries are not installed.
    """
    try:
        from hybrid_search.serve import server
    except ModuleNotFoundError as missing:
        raise MissingExtraError(
            f"serve needs the package {missing.name}: {install_command('serve')}"
        ) from missing
    return server


def _announce(as_json: bool, address: str) -> None:
    """Tell where the service answers, at once also where standard output is a pipe."""
    if as_json:
        options.print_json({"url": address, "pid": os.getpid()})
    else:
        options.print_lines(f"open {address} in a browser; Ctrl-C ends the service")
    sys.stdout.flush()
