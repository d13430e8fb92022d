"""Files of the data folder that may be missing."""

from __future__ import annotations

from pathlib import Path


def require_file(path: Path, origin: str) -> Path:
    """`path`. Raises SystemExit with where it comes from if there is no such file."""
    if not path.is_file():
        raise SystemExit(f"{path}: no such file: {origin}")
    return path
