"""Where results go, and how the newest are found."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
RESULTS = ROOT / "results"
STORE = ROOT.parent / ".benchmarks"
"""Indexes made for measuring; kept between runs, ignored by git."""

DATA = ROOT.parent.parent / "shared" / "data"


def write(name: str, payload: dict[str, Any], folder: Path | None = None) -> Path:
    """Save `payload` as ``NAME-COMMIT.json`` with the commit, the command and the machine; older
    results of that name in `folder` are replaced.
    """
    folder = folder or RESULTS
    for old in find_results(name, folder):
        old.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    return save(folder / f"{name}-{_commit()}.json", payload)


def find_results(name: str, folder: Path | None = None) -> list[Path]:
    """The results of that name, in which ``?`` stands for any letter; what stands behind the last
    dash of a file is the commit.
    """
    return sorted(
        path
        for path in (folder or RESULTS).glob("*.json")
        if fnmatchcase(path.stem.rpartition("-")[0], name)
    )


def save(path: Path, payload: dict[str, Any]) -> Path:
    """Save `payload` at `path` in the same way, for results that are not of this repository's own
    table.
    """
    path.write_text(json.dumps({"made": _describe_run(), **payload}, indent=1) + "\n")
    print(
        f"wrote {path.relative_to(ROOT.parent) if path.is_relative_to(ROOT.parent) else path}",
        file=sys.stderr,
    )
    return path


def _commit() -> str:
    return _git("rev-parse", "--short=10", "HEAD")


def _describe_run() -> dict[str, str]:
    changed = bool(_git("status", "--porcelain", "--untracked-files=no", "--", "hybrid_search"))
    return {
        "commit": _commit() + ("+changes" if changed else ""),
        "command": " ".join(
            [
                "python -m",
                (
                    sys.modules["__main__"].__spec__.name.removesuffix(".__main__")
                    if sys.modules["__main__"].__spec__
                    else "?"
                ),
                *map(_mask_argument, sys.argv[1:]),
            ]
        ),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
    }


def _mask_argument(argument: str) -> str:
    """An argument without the folders of this machine, of an absolute path its last name; of a URL,
    which may hold a password, what kind it is.
    """
    scheme, separator, _ = argument.partition("://")
    return (
        f"{scheme}{separator}"
        if separator
        else Path(argument).name
        if Path(argument).is_absolute()
        else argument
    )


def has_result(name: str) -> bool:
    """Whether there is a result of that name."""
    return bool(find_results(name))


def read_newest(name: str, folder: Path | None = None) -> dict[str, Any]:
    """The result of that name. Raises FileNotFoundError saying which command makes it."""
    paths = find_results(name, folder)
    if not paths:
        raise FileNotFoundError(
            f"no result {name!r} in {folder or RESULTS}: run python -m benchmarks.quality or python -m benchmarks.speed"
        )
    payload: dict[str, Any] = json.loads(paths[-1].read_text())
    return payload


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
