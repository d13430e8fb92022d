"""Make the folder that one server runs in: configuration, data, logs and temporary files.

The installed server itself is only read.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.servers import account
from tools.servers.catalog import Release, StartError
from tools.servers.jdk import Jdk

HEAP = ("-Xms2g", "-Xmx2g", "-XX:G1HeapRegionSize=4m")
"""Options of the heap. The size of its regions matters.

A heap of this size has regions of 1 MB by default, in which what one kNN search takes is a
humongous object. Some hundred searches filled the heap with them before a collection began, and
OpenSearch's circuit breaker answered 429.
"""
PORTS = range(20_000, 32_000)
"""Ports for servers, below those that the system gives to outgoing connections.

So a server that is started again finds its port free.
"""


@dataclass(frozen=True, slots=True)
class ServerLayout:
    """The folders and the port of one server."""

    release: Release
    home: Path
    folder: Path
    port: int

    @property
    def log(self) -> Path:
        """The file with the server's standard output and error."""
        return self.folder / "console.log"

    @property
    def scratch(self) -> Path:
        """The folder for temporary files, native libraries among them."""
        return self.folder / "temporary"

    def command(self, jdk: Jdk) -> list[str]:
        """Return the command that starts the server."""
        if self.release.is_distribution:
            return [str(self.home / "bin" / self.release.engine)]
        options = [
            *HEAP,
            f"-Djava.io.tmpdir={self.scratch}",
            f"-Djna.tmpdir={self.scratch}",
            "-Dorg.apache.logging.log4j.level=INFO",
        ]
        path = f"{self.home}/lib/*:{self.home}/knn/*"
        return [
            str(jdk.home / "bin" / "java"),
            *options,
            "-cp",
            path,
            "tools.servers.OpenSearchNode",
            str(self.home),
            f"{self.folder}/config",
        ]

    def environment(self, jdk: Jdk) -> dict[str, str]:
        """Return the server's environment.

        Only PATH is taken over from ours: a developer's ES_JAVA_OPTS must change nothing here.
        """
        prefix = {"opensearch": "OPENSEARCH", "elasticsearch": "ES"}[self.release.engine]
        own = {
            "JAVA_HOME": str(jdk.home),
            "JAVA_OPTS": " ".join(HEAP),
            "PATH_CONF": f"{self.folder}/config",
            "TMPDIR": str(self.scratch),
        }
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.folder),
            **{f"{prefix}_{name}": value for name, value in own.items()},
        }


def prepare(
    release: Release, home: Path, settings: Mapping[str, str], files: Mapping[str, bytes]
) -> ServerLayout:
    """Make a new folder under the system's temporary folder, owned by the server's user.

    Returns:
        The folders and the port.

    Raises:
        StartError: If the server's user cannot read the temporary folder.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"{release.name}-"))
    folder.chmod(0o755)
    try:
        if not account.can_read(folder):
            raise StartError(
                f"{release.name} runs as the user {account.NAME}, who cannot read {folder}: "
                "set TMPDIR to a folder that everybody can read"
            )
        place = ServerLayout(release, _readable_home(home, folder), folder, free_port())
        _configure(place, settings, files)
    except BaseException:
        shutil.rmtree(folder)
        raise
    return place


def _readable_home(home: Path, folder: Path) -> Path:
    """Return `home`, or a copy of it in `folder` if the server's user cannot read `home`."""
    if account.can_read(home / "config"):
        return home
    return Path(shutil.copytree(home, folder / "home"))


def _configure(
    place: ServerLayout, settings: Mapping[str, str], files: Mapping[str, bytes]
) -> None:
    config = Path(shutil.copytree(place.home / "config", place.folder / "config"))
    options = config / "jvm.options"
    if options.is_file():
        text = (
            options.read_text(encoding="utf-8")
            .replace("logs/", f"{place.folder}/logs/")
            .replace("HeapDumpPath=data", f"HeapDumpPath={place.folder}/data")
        )
        options.write_text(text, encoding="utf-8")
    lines = [
        f"{name}: {json.dumps(value)}\n"
        for name, value in (_settings(place) | dict(settings)).items()
    ]
    (config / f"{place.release.engine}.yml").write_text("".join(lines), encoding="utf-8")
    for name, content in files.items():
        (config / name).write_bytes(content)
    for name in ("config", "data", "logs", place.scratch.name):
        (place.folder / name).mkdir(exist_ok=True)
        account.own(place.folder / name)


def _settings(place: ServerLayout) -> dict[str, str]:
    security = (
        {"xpack.security.enabled": "false"} if place.release.engine == "elasticsearch" else {}
    )
    return {
        "cluster.name": "tests",
        "node.name": "node",
        "path.data": f"{place.folder}/data",
        "path.logs": f"{place.folder}/logs",
        "network.host": "127.0.0.1",
        "http.port": str(place.port),
        "transport.port": str(free_port()),
        "discovery.type": "single-node",
        "cluster.routing.allocation.disk.threshold_enabled": "false",
        **security,
    }


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
