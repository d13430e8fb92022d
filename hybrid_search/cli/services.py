"""What the commands share that answer until they are stopped: ``serve`` and ``mcp``."""

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
    """Return the module `name` of a service, whose libraries the extra brings.

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
    """Return where the indexes of `url` are, without the kind of store."""
    return config.settings(url).url.partition(":")[2]


def announce_json(address: str) -> None:
    """Print where a service answers as JSON, at once also where standard output is a pipe."""
    options.print_json({"url": address, "pid": os.getpid()})
    sys.stdout.flush()


def announce_page(address: str) -> None:
    """Print where a service shows its page, at once also where standard output is a pipe."""
    options.print_lines(f"open {address} in a browser; Ctrl-C ends the service")
    sys.stdout.flush()
