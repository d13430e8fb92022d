"""Settings from the environment: the only place that reads it.

``HYBRID_SEARCH_URL``     where indexes live: ``embedded:PATH`` or ``memory:`` (default: ``embedded:`` in the user's data folder)
``HYBRID_SEARCH_MODEL``   a model folder (default: the shipped one)
``HYBRID_SEARCH_DEVICE``  auto, cpu, cuda or tensorrt (default: auto)
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

DEFAULT_INDEX = "calls"


@dataclass(frozen=True, slots=True)
class Settings:
    """What was asked for: by argument, else by the environment, else by default."""

    url: str
    model: Path | None
    device: str


def settings(url: str | None = None, model: str | Path | None = None, device: str | None = None) -> Settings:
    """Fill in what was not given."""
    folder = model or os.environ.get("HYBRID_SEARCH_MODEL")
    return Settings(
        url=url or os.environ.get("HYBRID_SEARCH_URL") or f"embedded:{platformdirs.user_data_path('hybrid_search')}",
        model=Path(folder) if folder else None,
        device=device or os.environ.get("HYBRID_SEARCH_DEVICE") or "auto",
    )
