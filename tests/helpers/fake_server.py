"""A server on a real socket that replies as a test scripts it, and records the requests."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

HELLO = {
    "opensearch": {"version": {"distribution": "opensearch", "number": "3.5.0"}},
    "elasticsearch": {"version": {"number": "9.5.3"}},
}
"""The response of each engine to ``GET /``, with the version that tests are for."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request as received."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply, sent after `wait` seconds; with `reset` the connection is broken instead.

    A body of bytes is sent as it is, any other as JSON, and an empty header is left out.
    """

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0
    reset: bool = False


@dataclass(frozen=True, slots=True)
class RawReply:
    """Bytes that are sent as they are, instead of a reply in HTTP, before a hang-up."""

    pieces: Iterable[bytes]


Script = Callable[[HttpRequest], Reply | RawReply]


def reply_in_turn(*replies: Reply) -> Script:
    """Return a script that gives one reply after the other, and repeats the last one."""
    remaining = list(replies)
    return lambda _: remaining.pop(0) if len(remaining) > 1 else remaining[0]


def make_bulk_response(request: HttpRequest, status: int = 200) -> dict[str, Any]:
    """Return the response to a bulk request in which all actions had the same `status`."""
    lines = iter(request.body.splitlines())
    items = []
    for line in lines:
        ((kind, action),) = json.loads(line).items()
        items.append({kind: {"_id": action["_id"], "status": status}})
        if kind != "delete":
            next(lines)  # the document, which may have any keys
    return {"items": items}


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Print nothing: some tests are about clients that hang up or do not trust the server."""


class ScriptedServer:
    """Listens on loopback during its ``with`` block; `certificate` and `key` make it use TLS."""

    def __init__(
        self, script: Script, certificate: Path | None = None, key: Path | None = None
    ) -> None:
        self.requests: list[HttpRequest] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # it would hold each body back for 40 ms

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                request = HttpRequest(
                    self.command,
                    self.path,
                    {name.lower(): value for name, value in self.headers.items()},
                    body,
                )
                outer.requests.append(request)
                outer.send(self, script(request))

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = (  # noqa: N815
                answer  # the names that the library looks for
            )

            def log_message(self, *_: Any) -> None:
                """Print nothing: tests read the client's messages."""

        self._server = _QuietServer(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self._server.server_address[1]
        self.scheme = "https" if certificate else "http"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    @property
    def url(self) -> str:
        """The server's URL, such as ``http://127.0.0.1:40123``."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def send(self, handler: BaseHTTPRequestHandler, reply: Reply | RawReply) -> None:
        """Send a reply; the client may hang up on a raw one."""
        if isinstance(reply, RawReply):
            handler.close_connection = True
            for piece in reply.pieces:
                handler.wfile.write(piece)
            return
        time.sleep(reply.wait)
        if reply.reset:
            handler.connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )  # close by RST
            handler.connection.close()
            handler.close_connection = True
            return
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        head = {
            "content-type": "application/json",
            "x-elastic-product": "Elasticsearch",
            "content-length": str(len(body)),
        }
        handler.send_response(reply.status)
        for name, value in (head | reply.headers).items():
            if not value:
                continue
            handler.send_header(name, value)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files of a certificate authority, and a certificate for 127.0.0.1 with its key."""

    authority: Path
    certificate: Path
    key: Path


def make_certificates(folder: Path) -> Certificates:
    """Make certificates that are valid for a day, with the ``openssl`` command."""
    ca, ca_key, certificate, key = (
        folder / name for name in ("ca.pem", "ca.key", "server.pem", "server.key")
    )
    new = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "1",
    ]
    _run(
        [
            *new,
            "-subj",
            "/CN=tests",
            "-addext",
            "keyUsage=critical,keyCertSign",
            "-keyout",
            str(ca_key),
            "-out",
            str(ca),
        ]
    )
    signed = (
        f"-CA {ca} -CAkey {ca_key} -addext subjectAltName=IP:127.0.0.1 -addext "
        "basicConstraints=critical,CA:false"
    ).split()
    _run([*new, "-subj", "/CN=127.0.0.1", "-keyout", str(key), "-out", str(certificate), *signed])
    return Certificates(ca, certificate, key)


def _run(command: list[str]) -> None:
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
