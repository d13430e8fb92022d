"""Libraries that only some systems need."""

from __future__ import annotations

import importlib
from typing import Any


def import_library(name: str, package: str = "hybrid-search[export]") -> Any:
    """The module `name`. Raises SystemExit saying which package brings it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SystemExit(f"{name} is not installed: pip install '{package}'") from error
