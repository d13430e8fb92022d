"""Which ONNX Runtime provider runs, on which card, and the refusal to run on another one than was
asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from hybrid_search.errors import DeviceError, UsageError

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}
DEVICES = ("auto", *PROVIDERS)

CPU, CUDA, TENSORRT = PROVIDERS.values()


@dataclass(frozen=True, slots=True)
class Device:
    """A provider, and the `number` of its card, where it has cards: 0 is the first of those that
    ``CUDA_VISIBLE_DEVICES`` shows.
    """

    provider: str
    number: int = 0

    @classmethod
    def choose(cls, name: str, available: Sequence[str]) -> Self:
        """What ``cpu``, ``cuda``, ``tensorrt`` or, of the second card, ``cuda:1`` stand for;
        ``auto`` takes CUDA where the runtime offers it, else the CPU.

        Raises UsageError, DeviceError.
        """
        kind, colon, number = name.partition(":")
        if kind not in DEVICES or (
            colon and (kind in ("auto", "cpu") or not (number.isascii() and number.isdecimal()))
        ):
            raise UsageError(
                f"device {name!r} is not one of {', '.join(DEVICES)}, nor the card of a number as in cuda:1"
            )
        if kind == "auto":
            kind = "cuda" if CUDA in available else "cpu"
        if PROVIDERS[kind] not in available:
            raise DeviceError(
                f"device {name!r} was asked for, and this ONNX Runtime offers only {', '.join(available)}. "
                "Install the extra for it (pip install 'hybrid-search[gpu]', without [cpu] beside it) or ask for device='auto'."
            )
        return cls(PROVIDERS[kind], int(number or 0))

    @property
    def is_accelerated(self) -> bool:
        """Whether it is a card."""
        return self.provider != CPU

    def providers(self, precision: str, cache: Path) -> list[tuple[str, dict[str, Any]]]:
        """What a session of ONNX Runtime is made with.

        TensorRT builds an engine for minutes, and keeps it in `cache`; CUDA runs what it cannot.
        """
        if not self.is_accelerated:
            return [(CPU, {})]
        cuda = (CUDA, {"device_id": self.number})
        if self.provider == CUDA:
            return [cuda]
        engine_cache = {"trt_engine_cache_enable": True, "trt_engine_cache_path": str(cache)}
        return [
            (
                TENSORRT,
                {
                    "device_id": self.number,
                    "trt_fp16_enable": precision == "float16",
                    **engine_cache,
                },
            ),
            cuda,
        ]


def list_providers() -> list[str]:
    """The providers of the ONNX Runtime that is installed. Raises ImportError where there is none."""
    import onnxruntime

    providers: list[str] = onnxruntime.get_available_providers()
    return providers


def confirm(expected: str, actual: Sequence[str]) -> None:
    """Raise DeviceError if the session fell back: a GPU worker that runs on the CPU is a failure,
    not a warning.
    """
    if not actual or actual[0] != expected:
        raise DeviceError(
            f"{expected} was asked for and {actual[0] if actual else 'nothing'} runs: check the driver and the CUDA libraries"
        )


def is_accelerated(encoder: object) -> bool:
    """Whether an encoder runs on another device than the CPU. One that does not say runs there."""
    return getattr(encoder, "provider", CPU) != CPU
