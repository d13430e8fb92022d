"""Find an installed Java that a server runs on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.servers.catalog import Release, StartError

FOLDER = Path("/usr/lib/jvm")
"""Where Linux distributions put their JDKs."""


@dataclass(frozen=True, slots=True)
class Jdk:
    """A Java with its compiler; `version` is 17, 21 and so on."""

    home: Path
    version: int


def find_jdk(release: Release) -> Jdk:
    """Return the oldest installed JDK that a release runs on.

    Raises:
        StartError: If there is none; the message lists the JDKs that are installed.
    """
    jdks = sorted(iterate_jdks(), key=lambda jdk: jdk.version)
    suitable = [jdk for jdk in jdks if jdk.version in release.java]
    if suitable:
        return suitable[0]
    versions = ", ".join(str(jdk.version) for jdk in jdks) or "none"
    newest = release.java[-1]
    raise StartError(
        f"{release.name} needs JDK {release.java[0]} to {newest}, but installed is {versions}: "
        f"install JDK {newest} under {FOLDER}, or set JAVA_HOME"
    )


def iterate_jdks() -> Iterator[Jdk]:
    """Yield the JDKs of JAVA_HOME, JAVA_HOME_21_X64 and the like, and of the system's folder."""
    java_homes = [
        Path(folder)
        for name, folder in os.environ.items()
        if name.startswith("JAVA_HOME") and folder
    ]
    for home in dict.fromkeys(path.resolve() for path in [*java_homes, *FOLDER.glob("*")]):
        version = _read_version(home)
        if version and (home / "bin" / "javac").exists():
            yield Jdk(home, version)


def _read_version(home: Path) -> int:
    """Return 17 for ``JAVA_VERSION="17.0.15"`` in the file ``release``; 0 without one."""
    file = home / "release"
    match = (
        re.search(r'^JAVA_VERSION="(\d+)', file.read_text(encoding="utf-8"), re.MULTILINE)
        if file.is_file()
        else None
    )
    return int(match[1]) if match else 0
