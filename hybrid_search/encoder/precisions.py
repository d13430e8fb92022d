"""Choose the precision a graph runs in, from the request, the model folder and the device."""

from __future__ import annotations

from hybrid_search.encoder.devices import Device
from hybrid_search.errors import UsageError

STORED, STORED_INT8 = "stored", "stored-int8"
"""Mark a float32 graph whose weights are float16, or mostly int8.

Graphs in int8 and float16 are made from either.
"""
ANY_PRECISION = (STORED, STORED_INT8)

PRECISIONS = ("auto", "int8", "float16", "float32")


def choose(precision: str, graph_precision: str, device: Device) -> str:
    """Return the precision to run in: int8, float16 or float32.

    `graph_precision` is that of the folder's graph. With one of `ANY_PRECISION` all three are
    possible, and ``auto`` is int8 on CPUs and float16 elsewhere.

    Raises:
        UsageError: If the precision is unknown, or the folder does not have it.
    """
    if precision not in PRECISIONS:
        raise UsageError(f"precision {precision!r} is not one of {', '.join(PRECISIONS)}")
    if graph_precision not in ANY_PRECISION:
        if precision not in ("auto", graph_precision):
            raise UsageError(
                f"precision {precision!r} was requested, but this model has only "
                f"{graph_precision}: use {graph_precision} or auto, "
                f"or a model exported in the precision {STORED}, which has all"
            )
        return graph_precision
    if precision == "auto":
        return "float16" if device.is_accelerated else "int8"
    return precision
