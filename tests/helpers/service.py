"""A service of its own process, as `hybrid-search serve` starts it, and requests to it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

SECONDS = 240
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, headers (their names in lower case) and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, parsed as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class RunningService:
    """A service that answers at `url`."""

    url: str
    process: subprocess.Popen[str]
    log: list[str]

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HttpAnswer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            answer_headers = {name.lower(): value for name, value in response.getheaders()}
            return HttpAnswer(response.status, answer_headers, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> HttpAnswer:
        return self.request("GET", path, headers=headers)

    def post(self, path: str, value: Any, **headers: str) -> HttpAnswer:
        return self.request("POST", path, json.dumps(value).encode(), {**JSON, **headers})

    def stop(self) -> int:
        """End the service as a service manager does, and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)


@contextmanager
def run_service(url: str, *arguments: str) -> Iterator[RunningService]:
    """Start a service for the indexes at `url` and stop it after the block."""
    command = [sys.executable, "-m", "hybrid_search", "serve", "--json", "--url", url]
    if "--port" not in arguments:
        command += ["--port", "0"]
    process = subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    log: list[str] = []
    reader = threading.Thread(target=log.extend, args=(process.stderr,), daemon=True)
    reader.start()
    try:
        line = process.stdout.readline()
        assert line, f"the service did not start: {log}"
        yield RunningService(json.loads(line)["url"], process, log)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        reader.join(SECONDS)
        process.stdout.close()
        process.stderr.close()
