"""The Java of each server: the nearest of those that are installed."""

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
    """The oldest JDK that `release` runs on.

    Raises StartError where there is none, naming those there are.
    """
    jdks = sorted(iterate_jdks(), key=lambda jdk: jdk.version)
    suitable = [jdk for jdk in jdks if jdk.version in release.java]
    if suitable:
        return suitable[0]
    versions = ", ".join(str(jdk.version) for jdk in jdks) or "none"
    newest = release.java[-1]
    raise StartError(
        f"{release.name} needs JDK {release.java[0]} to {newest}, here is {versions}: install JDK {newest} under {FOLDER} or set JAVA_HOME"
    )


def iterate_jdks() -> Iterator[Jdk]:
    """The JDKs that JAVA_HOME (also JAVA_HOME_21_X64 and the like) and the system's folder hold."""
    java_homes = [
        Path(folder)
        for name, folder in os.environ.items()
        if name.startswith("JAVA_HOME") and folder
    ]
    for home in dict.fromkeys(path.resolve() for path in [*java_homes, *FOLDER.glob("*")]):
        version = _version(home)
        if version and (home / "bin" / "javac").exists():
            yield Jdk(home, version)


def _version(home: Path) -> int:
    """From the file ``release``: 17 of ``JAVA_VERSION="17.0.15"``; 0 where it says nothing."""
    file = home / "release"
    match = (
        re.search(r'^JAVA_VERSION="(\d+)', file.read_text(encoding="utf-8"), re.MULTILINE)
        if file.is_file()
        else None
    )
    return int(match[1]) if match else 0
