"""Choice of a model's precision, and of the graph for this processor."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import cache

from hybrid_search.encoder.devices import Device
from hybrid_search.errors import ModelError, UsageError

RUNNABLE = ("int8", "float16", "float32")
"""The precisions of graphs, which name their files, as in ``int8.onnx``."""

PRECISIONS = ("auto", *RUNNABLE)

UNSIGNED = "int8-unsigned.onnx"
"""The int8 graph for processors where products with signed weights saturate."""

X86 = ("x86_64", "amd64")
EXACT_PRODUCTS = ("icelake", "alder", "sierra")
"""numkong's names of x86 processors with VNNI, which adds products of int8 without saturation."""


def choose(precision: str, available: Sequence[str], device: Device) -> str:
    """Return the precision to run in, one of those in the model folder.

    ``auto`` is int8 on CPUs and float16 elsewhere, or any available precision without these.

    Raises:
        UsageError: If there is no such precision.
        ModelError: If the folder lacks it.
    """
    if precision not in PRECISIONS:
        raise UsageError(f"precision {precision!r} is not one of {', '.join(PRECISIONS)}")
    if precision == "auto":
        fitting = "float16" if device.is_accelerated else "int8"
        return fitting if fitting in available else available[0]
    if precision not in available:
        raise ModelError(
            f"precision {precision!r} was requested, but this model has only "
            f"{' and '.join(available)}: use one of these or auto, or export it in {precision}"
        )
    return precision


def graph_name(precision: str) -> str:
    """Return the file name of the graph for a precision on this machine."""
    return UNSIGNED if precision == "int8" and saturates() else f"{precision}.onnx"


@cache
def saturates() -> bool:
    """Return whether ONNX Runtime's products with int8 weights saturate on this processor.

    On x86 without VNNI, two 8-bit products are added in 16 bits, which can overflow: a span's mean
    cosine with float32 was .9970 instead of .9983. Products with uint8 weights are exact there and
    took 8% more time (ONNX Runtime's documentation, "Quantize ONNX models").
    """
    if platform.machine().lower() not in X86:
        return False
    import numkong

    capabilities = numkong.get_capabilities()
    return not any(capabilities.get(name) for name in EXACT_PRODUCTS)
