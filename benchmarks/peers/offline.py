"""Nothing leaves the machine: telemetry of all peers is switched off, and connections are refused.

The switches are those that the libraries document. An audit hook refuses connections of Python code
to other machines all the same, so a switch that was forgotten is an error and not a leak.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from typing import Any

SWITCHES = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "DO_NOT_TRACK": "1",
}
"""Environment variables; they count when a library is imported. bm25s and LanceDB send nothing."""


class ConnectionRefusedOfflineError(ConnectionError):
    """A library wanted to reach another machine."""


def go_offline() -> None:
    """Set `SWITCHES`, and refuse connections to other machines until the process ends."""
    os.environ.update(SWITCHES)
    sys.addaudithook(refuse_connection)


def refuse_connection(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise for a connection, or a look-up of a name, that is not of this machine.

    The error names the host; what was to be sent is not looked at.
    """
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        _check_host(arguments[1][0])
    if event == "socket.getaddrinfo" and arguments[0]:
        _check_host(arguments[0])


def _check_host(host: str | bytes) -> None:
    name = host.decode() if isinstance(host, bytes) else str(host)
    if not _is_loopback(name):
        raise ConnectionRefusedOfflineError(
            f"a library wanted to connect to {name!r}, and only this machine is allowed:"
            " add its switch to benchmarks/peers/offline.py"
        )


def _is_loopback(name: str) -> bool:
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
