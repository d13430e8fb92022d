"""Make what Elasticsearch's security needs: a certificate for https, and users with passwords."""

from __future__ import annotations

import os
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.servers.catalog import RELEASES, StartError
from tools.servers.install import install_release
from tools.servers.jdk import find_jdk

SETTINGS = {
    "xpack.security.enabled": "true",
    "xpack.security.http.ssl.enabled": "true",
    "xpack.security.http.ssl.certificate": "node.crt",
    "xpack.security.http.ssl.key": "node.key",
}


@dataclass(frozen=True, slots=True)
class Security:
    """Settings and files for a server with security, and a certificate for its clients.

    Attributes:
        settings: Settings for `start`.
        files: Files for `start`.
        ca: The certificate, as PEM, that signs the server's own.
    """

    settings: Mapping[str, str]
    files: Mapping[str, bytes]
    ca: bytes


def security(server: str, users: Mapping[str, tuple[str, str]]) -> Security:
    """Return https at 127.0.0.1 and localhost, and users, for the release called `server`.

    The server's own tools make them. Each user has a password (6 letters or more) and a role.
    """
    release = RELEASES[server]
    jdk = find_jdk(release)
    tools = install_release(release, jdk) / "bin"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "users").touch()
        (folder / "users_roles").touch()
        environment = {
            "PATH": os.environ["PATH"],
            "ES_JAVA_HOME": str(jdk.home),
            "ES_PATH_CONF": temporary,
        }
        for name, (password, role) in users.items():
            _run(
                environment,
                tools / "elasticsearch-users",
                "useradd",
                name,
                "-p",
                password,
                "-r",
                role,
            )
        _certify(environment, tools / "elasticsearch-certutil", folder)
        files = {
            path.name: path.read_bytes()
            for path in (*folder.glob("users*"), *folder.glob("node/node.*"))
        }
        return Security(SETTINGS, files, (folder / "ca" / "ca.crt").read_bytes())


def _certify(environment: Mapping[str, str], tool: Path, folder: Path) -> None:
    """Make ``ca/`` and ``node/`` in a folder, each with a certificate and its key."""
    _run(environment, tool, "ca", "--silent", "--pem", "--out", str(folder / "ca.zip"))
    zipfile.ZipFile(folder / "ca.zip").extractall(folder)
    signed = ("--ca-cert", str(folder / "ca" / "ca.crt"), "--ca-key", str(folder / "ca" / "ca.key"))
    names = ("--name", "node", "--ip", "127.0.0.1", "--dns", "localhost")
    _run(
        environment,
        tool,
        "cert",
        "--silent",
        "--pem",
        *signed,
        *names,
        "--out",
        str(folder / "node.zip"),
    )
    zipfile.ZipFile(folder / "node.zip").extractall(folder)


def _run(environment: Mapping[str, str], tool: Path, *arguments: str) -> None:
    result = subprocess.run(
        [str(tool), *arguments],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if result.returncode:
        raise StartError(
            f"{tool.name} {arguments[0]} failed:\n{(result.stdout + result.stderr).strip()[-2000:]}"
        )
