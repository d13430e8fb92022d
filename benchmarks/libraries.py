"""Libraries that only some measurements need."""

from __future__ import annotations

import importlib
from typing import Any


def import_library(name: str, package: str = "hybrid-search[export]") -> Any:
    """Import the module `name`; raises SystemExit that says which package brings it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SystemExit(f"{name} is not installed: pip install '{package}'") from error
