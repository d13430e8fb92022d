"""Libraries that only some measurements need."""

from __future__ import annotations

import importlib
from typing import Any

from hybrid_search.system import DISTRIBUTION


def import_library(name: str, package: str = f"{DISTRIBUTION}[export]") -> Any:
    """Import the module `name`; raises SystemExit that says which package brings it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SystemExit(f"{name} is not installed: pip install '{package}'") from error
