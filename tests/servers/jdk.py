"""The Java of each server: the nearest of those that are installed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.servers.catalog import Release, StartError

FOLDER = Path("/usr/lib/jvm")
"""Where Linux distributions put their JDKs."""


@dataclass(frozen=True, slots=True)
class Jdk:
    """A Java with its compiler; `version` is 17, 21 and so on."""

    home: Path
    version: int


def find(release: Release) -> Jdk:
    """The oldest JDK that `release` runs on. Raises StartError where there is none, naming those there are."""
    found = sorted(installed(), key=lambda each: each.version)
    fitting = [each for each in found if each.version in release.java]
    if fitting:
        return fitting[0]
    there = ", ".join(str(each.version) for each in found) or "none"
    newest = release.java[-1]
    raise StartError(f"{release.name} needs JDK {release.java[0]} to {newest}, here is {there}: install JDK {newest} under {FOLDER} or set JAVA_HOME")


def installed() -> Iterator[Jdk]:
    """The JDKs that JAVA_HOME (also JAVA_HOME_21_X64 and the like) and the system's folder hold."""
    named = [Path(folder) for name, folder in os.environ.items() if name.startswith("JAVA_HOME") and folder]
    for home in dict.fromkeys(path.resolve() for path in [*named, *FOLDER.glob("*")]):
        version = _version(home)
        if version and (home / "bin" / "javac").exists():
            yield Jdk(home, version)


def _version(home: Path) -> int:
    """From the file ``release``: 17 of ``JAVA_VERSION="17.0.15"``; 0 where it says nothing."""
    file = home / "release"
    written = re.search(r'^JAVA_VERSION="(\d+)', file.read_text(encoding="utf-8"), re.MULTILINE) if file.is_file() else None
    return int(written[1]) if written else 0
