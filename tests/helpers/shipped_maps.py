"""The maps from scores to probabilities that ship with the model."""

from __future__ import annotations

from hybrid_search.encoder import SHIPPED, model_folder
from hybrid_search.search.calibration import Calibration, load


def load_map(kind: str) -> Calibration:
    """Return the map of a kind for int8 and as many numbers as are usual."""
    return load(SHIPPED, "int8", model_folder.read(SHIPPED).sizes[0], kind)
