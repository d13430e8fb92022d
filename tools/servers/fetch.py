"""Fetch from Maven Central into a folder, by the machine's own Maven and with its settings."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import zipfile
from pathlib import Path

from tools.servers.catalog import DIGESTS, StartError

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8"

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId> <artifactId>servers</artifactId> <version>1</version>
  <dependencies>
    <dependency>
      <groupId>{}</groupId> <artifactId>{}</artifactId> <version>{}</version>
    </dependency>
  </dependencies>
</project>
"""


def unpack_artifact(artifact: str, folder: Path) -> None:
    """Unpack the zip `artifact` (``group:name:version:zip``) into a folder, less its top folder.

    Its digest is compared here, since not every mirror of Maven Central has the checksums.

    Raises:
        StartError: If the zip is not the one that was tried.
    """
    staging = folder.with_name(folder.name + ".fetched")
    shutil.rmtree(staging, ignore_errors=True)
    _maven("copy", f"-Dartifact={artifact}", f"-DoutputDirectory={staging}")
    (archive,) = staging.glob("*.zip")
    with archive.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != DIGESTS[artifact]:
        raise StartError(
            f"{artifact} has SHA-256 {digest} instead of {DIGESTS[artifact]}: "
            "delete it from the local Maven repository, and run this again"
        )
    zipfile.ZipFile(archive).extractall(staging / "content")
    inside = list((staging / "content").iterdir())
    folder.parent.mkdir(parents=True, exist_ok=True)
    (inside[0] if len(inside) == 1 else staging / "content").rename(folder)
    shutil.rmtree(staging)


def fetch_with_dependencies(artifact: str, folder: Path) -> None:
    """Fetch the jar `artifact` (``group:name:version``) and its dependencies into a folder."""
    folder.mkdir(parents=True)
    pom = folder / "pom.xml"
    pom.write_text(POM.format(*artifact.split(":")), encoding="utf-8")
    _maven(
        "copy-dependencies",
        f"--file={pom}",
        "-DincludeScope=runtime",
        f"-DoutputDirectory={folder}",
    )


def _maven(goal: str, *arguments: str) -> None:
    if not shutil.which("mvn"):
        raise StartError(
            "the servers are fetched by Maven, and mvn is not on the PATH: "
            "install Maven, or name running servers in HYBRID_SEARCH_TEST_URLS"
        )
    command = ["mvn", "--batch-mode", "--quiet", f"{PLUGIN}:{goal}", *arguments]
    result = subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if result.returncode:
        raise StartError(
            f"{' '.join(command)} failed:\n{(result.stdout + result.stderr).strip()[-2000:]}"
        )
