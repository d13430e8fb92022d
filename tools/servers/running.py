"""Starts a server, and everything one does with it while it runs."""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self

from tools.servers import account, guard, layout
from tools.servers.catalog import RELEASES, Release, StartError
from tools.servers.install import install_release
from tools.servers.jdk import find_jdk

PATIENCE = 300
"""Seconds to the first answer; a quiet machine takes 35."""

LIFE = 60
"""Minutes that a server lives at most, whatever becomes of its starter."""


@dataclass(slots=True, eq=False)
class Running:
    """A server that runs until `stop`, or until the process that started it ends."""

    release: Release
    place: layout.ServerLayout
    process: subprocess.Popen[bytes]
    tls: bool
    login: str = ""

    @property
    def url(self) -> str:
        """As in ``http://127.0.0.1:20901``."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.place.port}"

    @property
    def test_url(self) -> str:
        """As the product takes it: with its scheme, and the options of indexes that are made
        through it.
        """
        return f"{self.release.engine}+{self.url}?{'&'.join(filter(None, (self.release.options, 'replicas=0')))}"

    def is_alive(self) -> bool:
        """Whether the server's process runs."""
        return self._order("state") == "running"

    def stop(self) -> None:
        """End the server and remove all that it wrote."""
        if self.process.stdin and self.process.stdout:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            shutil.rmtree(
                self.place.folder, ignore_errors=True
            )  # the guard did it, unless it was killed itself

    def kill(self) -> None:
        """SIGKILL. `restart` starts it again."""
        self._order("kill")

    def restart(self) -> None:
        """Start the server again on its data and its port, after it has ended by itself or by
        `kill`, or having asked it to end (SIGTERM).
        """
        self._order("halt")
        self._order("start")
        self.wait()

    def wait(self) -> None:
        """Until the server `answers`.

        Raises StartError, with the end of its log, when it ended or answers too late.
        """
        deadline = time.monotonic() + PATIENCE
        while not self.is_ready():
            if not self.is_alive():
                raise StartError(f"{self.release.name} ended before it answered. {self.tail_log()}")
            if time.monotonic() > deadline:
                raise StartError(
                    f"{self.release.name} did not answer at {self.url} within {PATIENCE} s. {self.tail_log()}"
                )
            time.sleep(0.3)

    def is_ready(self) -> bool:
        """Whether the server answers and its indexes can be searched; where security is on and we
        have no login, whether it refuses to say so.
        """
        connection = self._connection()
        headers = (
            {"Authorization": f"Basic {b64encode(self.login.encode()).decode()}"}
            if self.login
            else {}
        )
        try:
            connection.request(
                "GET", "/_cluster/health?wait_for_status=yellow&timeout=1s", headers=headers
            )
            return (
                connection.getresponse().status == 200
                if self.login
                else connection.getresponse().status in (200, 401)
            )
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def tail_log(self, lines: int = 40) -> str:
        """The last lines of the server's log, with a heading."""
        log = self.place.log
        if not log.is_file():
            return "Its log is gone, as it is when the server was ended because its time was up: give it more minutes."
        log_lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(["The last lines of its log:", *log_lines[-lines:]])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _connection(self) -> http.client.HTTPConnection:
        if not self.tls:
            return http.client.HTTPConnection("127.0.0.1", self.place.port, timeout=10)
        unchecked = ssl.create_default_context()
        unchecked.check_hostname = False
        unchecked.verify_mode = ssl.CERT_NONE
        return http.client.HTTPSConnection(
            "127.0.0.1", self.place.port, timeout=10, context=unchecked
        )

    def _order(self, order: Literal["start", "halt", "kill", "state"]) -> str:
        """Have the guard do it; "ended" also where the guard is gone, as it is when the server's
        time was up.
        """
        if not self.process.stdin or not self.process.stdout or self.process.stdin.closed:
            return "ended"
        try:
            self.process.stdin.write(f"{order}\n".encode())
        except OSError:
            return "ended"
        return self.process.stdout.readline().decode().strip() or "ended"


def start(
    server: str,
    settings: Mapping[str, str] | None = None,
    files: Mapping[str, bytes] | None = None,
    *,
    login: str = "",
    minutes: float = LIFE,
) -> Running:
    """Start the release called `server`, as in ``opensearch-3.5.0``, and wait until it answers.

    `settings` are added to its own in opensearch.yml or elasticsearch.yml, `files` are put into its
    config folder by their names. Where security is on, `login` (``name:password``) is of a user who
    may ask how the cluster is. The server is killed after `minutes` in any case. Raises StartError,
    with the last lines of the server's log where there is one.
    """
    release, settings = RELEASES[server], settings or {}
    jdk = find_jdk(release)
    place = layout.prepare(release, install_release(release, jdk), settings, files or {})
    command = [
        sys.executable,
        "-I",
        guard.__file__,
        str(place.folder),
        str(minutes * 60),
        *account.command(),
        *place.command(jdk),
    ]
    try:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=pipe,
            stdout=pipe,
            start_new_session=True,
            env=place.environment(jdk),
            cwd="/",
        )
    except BaseException:
        shutil.rmtree(place.folder)
        raise
    running = Running(
        release, place, process, settings.get("xpack.security.http.ssl.enabled") == "true", login
    )
    try:
        running.wait()
    except BaseException:
        running.stop()
        raise
    return running
