"""Write folders of weights that were fetched: checked first, and whole or not at all."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hybrid_search.system import file_digest


def download_wheels(requirements: Sequence[str], folder: Path) -> list[Path]:
    """Return the wheels of some packages, sorted by name, downloaded into `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    subprocess.run([*command, str(folder), *requirements], check=True)  # noqa: S603
    return sorted(folder.glob("*.whl"))


@contextmanager
def write_folder(folder: Path, name: str) -> Iterator[Path]:
    """Yield a scratch folder, whose folder `name` becomes `folder` at the end of the block.

    Raises:
        SystemExit: If `folder` exists.
    """
    if folder.exists():
        raise SystemExit(f"{folder} is already there: remove it, or name another")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        yield Path(scratch)
        (Path(scratch) / name).rename(folder)


def check_digest(path: Path, sha256: str) -> None:
    """Check the digest of a fetched file.

    Raises:
        SystemExit: If it has another digest than `sha256`.
    """
    digest = file_digest(path)
    if digest != sha256:
        raise SystemExit(
            f"{path.name}: its SHA-256 starts with {digest:.12}, not {sha256:.12}."
            " Nothing was written: download it again"
        )
