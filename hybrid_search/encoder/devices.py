"""Choice of the ONNX Runtime provider and card, without silent fallback to another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from hybrid_search import config
from hybrid_search.errors import DeviceError, UsageError
from hybrid_search.system import install_command

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}
DEVICES = ("auto", *PROVIDERS)

CPU, CUDA, TENSORRT = PROVIDERS.values()


@dataclass(frozen=True, slots=True)
class Device:
    """A provider, and the number of the card if it has several.

    Card 0 is the first card in ``CUDA_VISIBLE_DEVICES``.
    """

    provider: str
    number: int = 0

    @classmethod
    def choose(cls, name: str, available: Sequence[str]) -> Self:
        """Return the device called ``cpu``, ``cuda``, ``tensorrt`` or ``auto``.

        ``cuda:1`` is the second card. ``auto`` is CUDA if the runtime offers it, else the CPU.
        `available` lists the runtime's providers.

        Raises:
            UsageError: If there is no such device.
            DeviceError: If this ONNX Runtime does not offer it.
        """
        kind, colon, number = name.partition(":")
        is_numbered = kind not in ("auto", "cpu") and number.isascii() and number.isdecimal()
        if kind not in DEVICES or (colon and not is_numbered):
            raise UsageError(
                f"device {name!r} is not one of {', '.join(DEVICES)}, "
                "nor a card with its number such as cuda:1"
            )
        if kind == "auto":
            kind = "cuda" if CUDA in available else "cpu"
        if PROVIDERS[kind] not in available:
            raise DeviceError(
                f"device {name!r} was requested, but this ONNX Runtime offers only "
                f"{', '.join(available)}. Install the extra for it ({install_command('gpu')}, "
                "without [cpu] beside it) or use device='auto'."
            )
        return cls(PROVIDERS[kind], int(number or 0))

    @property
    def is_accelerated(self) -> bool:
        """True for a card, False for the CPU."""
        return self.provider != CPU

    def providers(self, precision: str) -> list[tuple[str, dict[str, Any]]]:
        """Return the providers for an ONNX Runtime session, each with its options.

        TensorRT takes minutes to build an engine and keeps it in the user's cache; CUDA runs the
        operators that TensorRT does not support.
        """
        if not self.is_accelerated:
            return [(CPU, {})]
        cuda = (CUDA, {"device_id": self.number})
        if self.provider == CUDA:
            return [cuda]
        options = {
            "device_id": self.number,
            "trt_fp16_enable": precision == "float16",
            "trt_engine_cache_enable": True,
            "trt_engine_cache_path": str(config.cache_folder()),
        }
        return [(TENSORRT, options), cuda]


def list_providers() -> list[str]:
    """Return the providers of ONNX Runtime; raise ImportError if it is not installed."""
    import onnxruntime

    providers: list[str] = onnxruntime.get_available_providers()
    return providers


def confirm(expected: str, actual: Sequence[str]) -> None:
    """Check that the session did not fall back to another provider.

    A GPU worker that runs on the CPU is a failure, not a warning.

    Raises:
        DeviceError: If the first of the `actual` providers is not the `expected` one.
    """
    running = actual[0] if actual else "nothing"
    if running != expected:
        raise DeviceError(
            f"{expected} was requested, but {running} runs: check the driver and the CUDA libraries"
        )
