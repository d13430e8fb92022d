"""In which precision a graph runs: what was asked for, what the folder has, and what suits the
device.
"""

from __future__ import annotations

from hybrid_search.encoder.devices import Device
from hybrid_search.errors import UsageError

STORED = "stored"
"""Of a graph in float32 whose weights are kept as float16: the others are made of it (`derived`).
"""

PRECISIONS = ("auto", "int8", "float16", "float32")


def choose(precision: str, graph_precision: str, device: Device) -> str:
    """The precision that runs, int8, float16 or float32, of a folder whose graph is in `held`.

    ``auto`` is int8 on CPUs and float16 elsewhere, where the folder has the choice. Raises
    UsageError for one that is not known, or that the folder has not.
    """
    if precision not in PRECISIONS:
        raise UsageError(f"precision {precision!r} is not one of {', '.join(PRECISIONS)}")
    if graph_precision != STORED:
        if precision not in ("auto", graph_precision):
            raise UsageError(
                f"precision {precision!r} was asked for, and this model has {graph_precision} alone: use {graph_precision} or auto, or export it again with "
                "python -m export.to_onnx --precision stored, which has all"
            )
        return graph_precision
    if precision == "auto":
        return "float16" if device.is_accelerated else "int8"
    return precision
