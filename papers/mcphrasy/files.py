"""Files of the data folder that may be missing."""

from __future__ import annotations

from pathlib import Path


def require_file(path: Path, origin: str) -> Path:
    """Return `path`; raises SystemExit that tells its origin if there is no such file."""
    if not path.is_file():
        raise SystemExit(f"{path}: no such file: {origin}")
    return path
