"""Make the folder of a release in ``.servers/``: fetch it, and add what its distribution lacks."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.servers import fetch
from tools.servers.catalog import Release, StartError
from tools.servers.jdk import Jdk

FOLDER = Path(__file__).parent.parent.parent / ".servers"
SOURCES = Path(__file__).parent / "java"

DESCRIPTOR = """name=tests-main
description=GET / and HEAD /
version=1
classname=tools.servers.{}
java.version={}
elasticsearch.version={}
"""


def is_complete(release: Release) -> bool:
    """Tell whether a release is installed, and would be made of the same parts today."""
    recipe = FOLDER / release.name / "recipe"
    return recipe.is_file() and recipe.read_text(encoding="utf-8") == _recipe(release)


def install_release(release: Release, jdk: Jdk) -> Path:
    """Return the folder of a release, which is made first if it is missing or out of date.

    It gets its name when it is complete, and is never written afterwards: any number of servers may
    run from it.
    """
    folder = FOLDER / release.name
    with _exclusive_lock():
        if not is_complete(release):
            staging = folder.with_name(folder.name + ".part")
            for old in (staging, folder):
                shutil.rmtree(old, ignore_errors=True)
            make_folder = _install_distribution if release.is_distribution else _install_jars
            make_folder(release, jdk, staging)
            _make_readable(staging)
            (staging / "recipe").write_text(_recipe(release), encoding="utf-8")
            staging.rename(folder)
    return folder


@contextmanager
def _exclusive_lock() -> Iterator[None]:
    """Keep other processes out: two Mavens at once may spoil the local repository."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _recipe(release: Release) -> str:
    """Return what a folder is made from; if that changes, the folder is made again."""
    sources = b"".join((SOURCES / f"{name}.java").read_bytes() for name in release.sources)
    return f"{release}\n{hashlib.sha256(sources).hexdigest()}\n"


def _install_distribution(release: Release, jdk: Jdk, folder: Path) -> None:
    fetch.unpack_artifact(release.artifact, folder)
    if release.knn:
        fetch.unpack_artifact(release.knn, folder / "plugins" / "opensearch-knn")
    if release.sources:
        plugin = folder / "plugins" / "tests-main"
        _compile(release, jdk, [folder / "lib"], plugin)
        descriptor = DESCRIPTOR.format(release.sources[-1], release.java[0], release.version)
        (plugin / "plugin-descriptor.properties").write_text(descriptor, encoding="utf-8")


def _install_jars(release: Release, jdk: Jdk, folder: Path) -> None:
    fetch.fetch_with_dependencies(release.artifact, folder / "lib")
    fetch.unpack_artifact(release.knn, folder / "knn")
    _compile(release, jdk, [folder / "lib", folder / "knn"], folder / "lib")
    (folder / "config").mkdir()


def _compile(release: Release, jdk: Jdk, libraries: list[Path], folder: Path) -> None:
    """Make a jar of a release's sources, for the oldest Java that the release runs on."""
    classes = folder / "classes"
    classes.mkdir(parents=True)
    path = ":".join(f"{library}/*" for library in libraries)
    files = [str(SOURCES / f"{name}.java") for name in release.sources]
    _run(
        jdk,
        "javac",
        "--release",
        str(release.java[0]),
        "-proc:none",
        "-nowarn",
        "-cp",
        path,
        "-d",
        str(classes),
        *files,
    )
    _run(jdk, "jar", "--create", "--file", str(folder / "tests-main.jar"), "-C", str(classes), ".")
    shutil.rmtree(classes)


def _run(jdk: Jdk, tool: str, *arguments: str) -> None:
    result = subprocess.run(
        [str(jdk.home / "bin" / tool), *arguments],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if result.returncode:
        output = (result.stdout + result.stderr).strip()
        raise StartError(f"{tool} of JDK {jdk.version} failed:\n{output[-2000:]}")


def _make_readable(folder: Path) -> None:
    """Let every user read a folder, whatever our umask is.

    zipfile keeps no permissions, and the server may run as another user.
    """
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
