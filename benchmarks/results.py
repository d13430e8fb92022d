"""Results of measurements: their folders, and how they are written and read.

A result is one JSON file, ``NAME.json``, in the folder of its kind. It says itself which commit,
command, date and machine made it, so a rerun is a readable diff.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
RESULTS = ROOT / "results"
QUALITY = RESULTS / "quality"
SPEED = RESULTS / "speed"
SERVERS = RESULTS / "servers"
FAULTS = RESULTS / "faults"
PEERS = RESULTS / "peers"

STORE = ROOT.parent / ".benchmarks"
"""Indexes built for measuring; kept between runs, ignored by git."""

WEIGHTS = STORE / "weights"
"""Weights that were trained here and are not shipped."""

DATA = ROOT.parent.parent / "shared" / "data"


def write(name: str, payload: dict[str, Any], folder: Path) -> Path:
    """Return the path of `payload`, saved in `folder` as ``NAME.json`` with how it was made."""
    folder.mkdir(parents=True, exist_ok=True)
    return save(folder / f"{name}.json", payload)


def save(path: Path, payload: dict[str, Any]) -> Path:
    """Return `path`, where `payload` is saved with the commit, the command and the machine."""
    path.write_text(json.dumps({"made": _describe_run(), **payload}, indent=1) + "\n")
    label = path.relative_to(ROOT.parent) if path.is_relative_to(ROOT.parent) else path
    print(f"wrote {label}", file=sys.stderr)
    return path


def find_results(name: str, folder: Path) -> list[Path]:
    """Return the files in `folder` of that name, in which ``?`` stands for any character."""
    return sorted(folder.glob(f"{name}.json"))


def has_result(name: str, folder: Path) -> bool:
    """Tell whether `folder` has a result of that name."""
    return bool(find_results(name, folder))


def read_result(name: str, folder: Path) -> dict[str, Any]:
    """Return the result of that name.

    Raises:
        FileNotFoundError: If there is none; the message says which commands make results.
    """
    paths = find_results(name, folder)
    if not paths:
        raise FileNotFoundError(
            f"{folder} has no result {name!r}: benchmarks/README.md says which command makes it"
        )
    payload: dict[str, Any] = json.loads(paths[-1].read_text())
    return payload


def _describe_run() -> dict[str, str]:
    changed = bool(_git("status", "--porcelain", "--untracked-files=no", "--", "hybrid_search"))
    spec = sys.modules["__main__"].__spec__
    module = spec.name.removesuffix(".__main__") if spec else "?"
    version = platform.python_version()
    return {
        "commit": _git("rev-parse", "--short=10", "HEAD") + ("+changes" if changed else ""),
        "command": " ".join(["python -m", module, *map(_mask_argument, sys.argv[1:])]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {version}",
    }


def _mask_argument(argument: str) -> str:
    """Shorten an argument: a URL, which may hold a password, to its scheme, a path to its name."""
    scheme, separator, _ = argument.partition("://")
    if separator:
        return scheme + separator
    return Path(argument).name if Path(argument).is_absolute() else argument


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
