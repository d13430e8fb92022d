"""Shared code of the commands that run a service: ``serve`` and ``mcp``."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

from hybrid_search import config
from hybrid_search.cli import options
from hybrid_search.errors import MissingExtraError
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


def find_place(url: str | None) -> str:
    """Return the location of the indexes in `url`, without the scheme."""
    return config.settings(url).url.partition(":")[2]


def announce_json(address: str) -> None:
    """Print the address of a service as JSON, and flush it in case of a pipe."""
    options.print_json({"url": address, "pid": os.getpid()})
    sys.stdout.flush()


def announce_page(address: str) -> None:
    """Print the address of a service's page, and flush it in case of a pipe."""
    options.print_lines(f"open {address} in a browser; Ctrl-C ends the service")
    sys.stdout.flush()
