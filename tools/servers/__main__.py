"""``python -m tools.servers [--servers default|all|NAME,...] [-- COMMAND...]``: run COMMAND beside
real servers.

Their URLs are in HYBRID_SEARCH_TEST_URLS, with spaces between them, and the exit status is
COMMAND's. Without a COMMAND the URLs are printed and the servers run until Ctrl-C. Where
HYBRID_SEARCH_TEST_URLS is already set, nothing is started and COMMAND runs against those.
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
    """What the module says. Returns the exit status."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, _raise_interrupt)
    try:
        if urls := os.environ.get(VARIABLE, "").split():
            return _run_on_existing(urls, arguments.command)
        with ExitStack() as stack:
            servers = _start_releases(select_releases(arguments.servers), arguments.minutes, stack)
            status = (
                _run(arguments.command, [server.test_url for server in servers])
                if arguments.command
                else _idle(servers)
            )
            return max(status, _check_alive(servers))
    except StartError as error:
        tell(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130


def tell(line: str) -> None:
    """One line of progress."""
    sys.stderr.write(f"{line}\n")  # at once, as two threads may tell something


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.servers", description="Run COMMAND beside real servers."
    )
    parser.add_argument(
        "--servers",
        default="default",
        help=f"{', '.join(SETS)}, or of {', '.join(RELEASES)}, with commas between them (default: default)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=LIFE,
        help="the servers are killed after so long in any case (default: %(default)s)",
    )
    parser.add_argument(
        "command",
        nargs="*",
        metavar="COMMAND",
        help="after a --; without one the servers run until Ctrl-C",
    )
    return parser.parse_args()


def _run_on_existing(urls: list[str], command: list[str]) -> int:
    """COMMAND beside servers that are there already. Raises StartError where one does not answer."""
    for url in urls:
        parts = urlsplit(url)
        try:
            socket.create_connection((parts.hostname or "", parts.port or 9200), timeout=10).close()
        except OSError as error:
            raise StartError(f"{VARIABLE} is set, and nobody answers at {url}: {error}") from error
    tell(f"{VARIABLE} is set, so no server is started")
    return _run(command, urls) if command else 0


def _start_releases(
    releases: tuple[Release, ...], minutes: float, stack: ExitStack
) -> list[Running]:
    """All `releases`, fetched one after the other and started at once.

    Those that did start are stopped by `stack`, also when another failed.
    """
    for release in releases:
        jdk = find_jdk(release)
        if not is_complete(release):
            tell(f"{release.name}: fetching")
            install_release(release, jdk)
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
    """COMMAND with `urls` in its environment; when we are interrupted, so is it, and it is waited
    for.
    """
    with subprocess.Popen(command, env={**os.environ, VARIABLE: " ".join(urls)}) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()
            raise


def _idle(servers: list[Running]) -> int:
    tell("until Ctrl-C:")
    print(" ".join(server.test_url for server in servers), flush=True)
    while all(server.is_alive() for server in servers):
        time.sleep(1)
    return 0


def _check_alive(servers: list[Running]) -> int:
    """1 where a server ended before it was to: what was tested on it was not."""
    dead = [server for server in servers if not server.is_alive()]
    for server in dead:
        tell(f"error: {server.release.name} ended by itself. {server.tail_log()}")
    return int(bool(dead))


def _raise_interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
