"""Which ONNX Runtime provider runs, and the refusal to run on another one than was asked for."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_search.errors import DeviceError, UsageError

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
}
DEVICES = ("auto", *PROVIDERS)


def offered() -> list[str]:
    """The providers of the ONNX Runtime that is installed. Raises ImportError where there is none."""
    import onnxruntime

    found: list[str] = onnxruntime.get_available_providers()
    return found


def choose(device: str, offered: Sequence[str]) -> str:
    """The provider for `device`; ``auto`` takes CUDA where the runtime offers it, else the CPU. Raises UsageError, DeviceError."""
    if device not in DEVICES:
        raise UsageError(f"device {device!r} is not one of {', '.join(DEVICES)}")
    if device == "auto":
        device = "cuda" if PROVIDERS["cuda"] in offered else "cpu"
    if PROVIDERS[device] not in offered:
        raise DeviceError(
            f"device {device!r} was asked for, and this ONNX Runtime offers only {', '.join(offered)}. "
            "Install the extra for it (pip install 'hybrid-search[gpu]', without [cpu] beside it) or ask for device='auto'."
        )
    return PROVIDERS[device]


def confirm(asked: str, runs: Sequence[str]) -> None:
    """Raise DeviceError if the session fell back: a GPU worker that runs on the CPU is a failure, not a warning."""
    if not runs or runs[0] != asked:
        raise DeviceError(f"{asked} was asked for and {runs[0] if runs else 'nothing'} runs: check the driver and the CUDA libraries")


def accelerated(encoder: object) -> bool:
    """Whether an encoder runs on another device than the CPU. One that does not say runs there."""
    return getattr(encoder, "provider", PROVIDERS["cpu"]) != PROVIDERS["cpu"]
