"""Run a command beside real servers: ``python -m tools.servers [--servers NAMES] -- COMMAND...``.

NAMES are ``default``, ``all``, or names separated by commas. The URLs of the servers are in
HYBRID_SEARCH_TEST_URLS, separated by spaces, and the exit status is COMMAND's. Without a COMMAND
the URLs are printed, and the servers run until Ctrl-C or until their time is up. If
HYBRID_SEARCH_TEST_URLS is already set, nothing is started, and COMMAND runs against those servers.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import FrameType
from urllib.parse import urlsplit

from tools.servers.catalog import RELEASES, SETS, Release, StartError, select_releases
from tools.servers.install import install_release, is_complete
from tools.servers.jdk import find_jdk
from tools.servers.running import LIFE, Running, start

VARIABLE = "HYBRID_SEARCH_TEST_URLS"


def main() -> int:
    """Run the program, and return its exit status."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, _raise_interrupt)
    try:
        if urls := os.environ.get(VARIABLE, "").split():
            return _run_on_existing(urls, arguments.command)
        releases = select_releases(arguments.servers)
        _install_releases(releases)
        deadline = time.monotonic() + 60 * arguments.minutes
        with ExitStack() as stack:
            servers = _start_releases(releases, arguments.minutes, stack)
            status = (
                _run(arguments.command, [server.test_url for server in servers])
                if arguments.command
                else _wait(servers, deadline)
            )
            return max(status, _check_alive(servers))
    except StartError as error:
        tell(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130


def tell(line: str) -> None:
    """Write one line of progress on standard error."""
    sys.stderr.write(f"{line}\n")  # in one call, since two threads may write at once


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.servers", description="Run COMMAND beside real servers."
    )
    parser.add_argument(
        "--servers",
        default="default",
        help=f"{', '.join(SETS)}, or names separated by commas: {', '.join(RELEASES)} "
        "(default: default)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=LIFE,
        help="the servers end after so many minutes in any case (default: %(default)s)",
    )
    parser.add_argument(
        "command",
        nargs="*",
        metavar="COMMAND",
        help="a command, after --; without one the servers run until Ctrl-C",
    )
    return parser.parse_args()


def _run_on_existing(urls: list[str], command: list[str]) -> int:
    """Return the exit status of the command, run beside servers that are there already.

    Raises:
        StartError: If one of the servers does not answer.
    """
    for url in urls:
        parts = urlsplit(url)
        try:
            socket.create_connection((parts.hostname or "", parts.port or 9200), timeout=10).close()
        except OSError as error:
            raise StartError(
                f"{VARIABLE} is set, but no server answers at {url}: {error}"
            ) from error
    tell(f"{VARIABLE} is set, so no server is started")
    return _run(command, urls) if command else 0


def _install_releases(releases: tuple[Release, ...]) -> None:
    """Fetch what is missing, one release after the other."""
    for release in releases:
        jdk = find_jdk(release)
        if not is_complete(release):
            tell(f"{release.name}: fetching")
            install_release(release, jdk)


def _start_releases(
    releases: tuple[Release, ...], minutes: float, stack: ExitStack
) -> list[Running]:
    """Return running servers, started in parallel.

    `stack` stops those that did start, also if another one fails.
    """
    with ThreadPoolExecutor(len(releases)) as pool:
        futures = [pool.submit(_start_release, release, minutes, stack) for release in releases]
    return [future.result() for future in futures]


def _start_release(release: Release, minutes: float, stack: ExitStack) -> Running:
    started_at = time.monotonic()
    tell(f"{release.name}: starting")
    running = stack.enter_context(start(release.name, minutes=minutes))
    tell(f"{release.name}: answers at {running.url} after {time.monotonic() - started_at:.0f} s")
    return running


def _run(command: list[str], urls: list[str]) -> int:
    """Return the exit status of the command, run with `urls` in its environment."""
    with subprocess.Popen(command, env={**os.environ, VARIABLE: " ".join(urls)}) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()  # leaving the block waits for it
            raise


def _wait(servers: list[Running], deadline: float) -> int:
    """Print the URLs, and wait until Ctrl-C, until `deadline`, or until a server ends by itself."""
    minutes = (deadline - time.monotonic()) / 60
    tell(f"running until Ctrl-C, for {minutes:.0f} minutes at most. To try them:")
    for server in servers:
        tell(f"  export HYBRID_SEARCH_URL='{server.test_url}'  # {server.release.name}")
    tell("  hybrid-search ingest --sample && hybrid-search query 'waiting on hold'")
    print(" ".join(server.test_url for server in servers), flush=True)
    while all(server.is_alive() for server in servers):
        if time.monotonic() > deadline:
            tell("time is up: the servers are stopped (--minutes gives them longer)")
            break
        time.sleep(1)
    return 0


def _check_alive(servers: list[Running]) -> int:
    """Return 1 if a server ended by itself: then what was tested on it was not tested."""
    dead = [server for server in servers if not server.is_alive()]
    for server in dead:
        tell(f"error: {server.release.name} ended by itself. {server.tail_log()}")
    return int(bool(dead))


def _raise_interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
