"""Run one server for another process, and end it with that process.

This is a program: ``guard.py FOLDER SECONDS COMMAND...``. It starts COMMAND and reads one order a
line: start, halt (SIGTERM), kill (SIGKILL), state. It answers each with "running" or "ended". When
its standard input ends, which happens however its starter ends, or after SECONDS, it kills the
server and removes FOLDER. If the guard itself is killed, the system ends the server (``setpriv
--pdeathsig`` in COMMAND). The guard has a single thread, since the end of any thread sends that
signal.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 30
"""Seconds that a server has to end after SIGTERM."""


@dataclass(slots=True)
class Guard:
    """The server that `command` starts, in a process group of its own.

    Elasticsearch starts a second process from its first.
    """

    command: list[str]
    log: Path
    server: subprocess.Popen[bytes] | None = None

    def obey(self, order: str) -> str:
        """Carry out an order, and return the state of the server afterwards."""
        if order == "start" and not self.is_running():
            self._end()
            self._start()
        elif order == "halt" and self.server is not None:
            self._halt(self.server)
        elif order == "kill":
            self._end()
        return "running" if self.is_running() else "ended"

    def is_running(self) -> bool:
        """Tell whether the server's first process runs."""
        # WNOWAIT: an ended process is not collected here, so that no other one gets its number
        return self.server is not None and not os.waitid(
            os.P_PID, self.server.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
        )

    def _start(self) -> None:
        with self.log.open("ab") as log:
            self.server = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _halt(self, server: subprocess.Popen[bytes]) -> None:
        server.terminate()
        patience = time.monotonic() + PATIENCE
        while self.is_running() and time.monotonic() < patience:
            time.sleep(0.05)
        self._end()

    def _end(self) -> None:
        if self.server is not None:
            os.killpg(self.server.pid, signal.SIGKILL)
            self.server.wait()
            _wait_for_group(self.server.pid)
            self.server = None


def _wait_for_group(group: int) -> None:
    """Wait until the last process of a group has ended, which held the server's port and files.

    Where nobody collects orphans, this ends after two seconds.
    """
    for _ in range(40):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)


def read_order(deadline: float) -> str:
    """Return the next order; "" at the end of the input, or if none comes in time."""
    ready, _, _ = select.select([0], [], [], max(0.0, deadline - time.monotonic()))
    return os.read(0, 100).decode().strip() if ready else ""


def main(folder: str, seconds: str, *command: str) -> None:
    """Start the server, and carry out orders until there are no more."""
    guard = Guard(list(command), Path(folder) / "console.log")
    deadline = time.monotonic() + float(seconds)
    try:
        guard.obey("start")
        while order := read_order(deadline):
            print(guard.obey(order), flush=True)
    finally:
        guard.obey("kill")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main(*sys.argv[1:])
