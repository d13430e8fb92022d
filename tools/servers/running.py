"""Start a server, wait for it, kill it, start it again, and stop it."""

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
"""Seconds that a server may take to its first answer; a quiet machine takes 35."""

LIFE = 60
"""Minutes after which a server is ended in any case."""


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
        """The server's address, as in ``http://127.0.0.1:20901``."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.place.port}"

    @property
    def test_url(self) -> str:
        """The URL for hybrid_search, with options for the indexes that are made through it."""
        options = "&".join(filter(None, (self.release.options, "replicas=0")))
        return f"{self.release.engine}+{self.url}?{options}"

    def is_alive(self) -> bool:
        """Tell whether the server's process runs."""
        return self._order("state") == "running"

    def stop(self) -> None:
        """End the server, and remove all files that it wrote."""
        if self.process.stdin and self.process.stdout:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            # the guard has removed the folder, unless it was killed itself
            shutil.rmtree(self.place.folder, ignore_errors=True)

    def kill(self) -> None:
        """Kill the server (SIGKILL); `restart` starts it again."""
        self._order("kill")

    def restart(self) -> None:
        """Start the server again on its data and its port.

        If it still runs, it is asked to end before (SIGTERM).
        """
        self._order("halt")
        self._order("start")
        self.wait()

    def wait(self) -> None:
        """Wait until the server is ready.

        Raises:
            StartError: If the server ended or took too long; the message has the end of its log.
        """
        deadline = time.monotonic() + PATIENCE
        while not self.is_ready():
            if not self.is_alive():
                raise StartError(f"{self.release.name} ended before it answered. {self.tail_log()}")
            if time.monotonic() > deadline:
                raise StartError(
                    f"{self.release.name} did not answer at {self.url} within {PATIENCE} s. "
                    f"{self.tail_log()}"
                )
            time.sleep(0.3)

    def is_ready(self) -> bool:
        """Return True if the server answers, and its indexes can be searched.

        If security is on and we have no login, a refusal (401) is answer enough.
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
        """Return the last lines of the server's log, with a heading."""
        log = self.place.log
        if not log.is_file():
            return "Its log is gone, probably because its time was up: give it more minutes."
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
        """Return the guard's answer to an order.

        The answer is "ended" too if the guard is gone, as it is when the server's time was up.
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
    """Start a server, and wait until it answers.

    A server that does not start raises StartError, with the last lines of its log if there is one.

    Args:
        server: Name of the release, as in ``opensearch-3.5.0``.
        settings: More settings for opensearch.yml or elasticsearch.yml.
        files: More files for the server's config folder, by name.
        login: ``name:password`` of a user who may see the cluster's health, if security is on.
        minutes: After so many minutes the server is killed in any case.

    Returns:
        The running server.
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
