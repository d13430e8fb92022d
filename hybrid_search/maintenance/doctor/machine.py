"""Check this machine: Python, packages, ONNX Runtime and its devices, and the cache folder."""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hybrid_search.config import cache_folder
from hybrid_search.encoder import devices
from hybrid_search.maintenance.doctor.check import Check, ok, problem, warning
from hybrid_search.system import available_cores

OLDEST = (3, 11)
NEEDED = ("numpy", "tokenizers", "usearch", "pydantic", "opensearch-py", "typer", "rich")
OPTIONAL = (
    "onnx",
    "onnx-ir",
    "elasticsearch",
    "botocore",
    "prometheus-client",
    "opentelemetry-api",
    "ray",
)
RUNTIMES = ("onnxruntime", "onnxruntime-gpu")

LOW_SPACE, MINIMUM_SPACE = 2 * 10**9, 10**8
"""Free bytes on a disk. Below the first a run may not finish, below the second it cannot start."""


def python() -> Iterator[Check]:
    """Check the version of the Python interpreter."""
    system = f"{platform.system()} {platform.machine()}"
    finding = f"{platform.python_version()} on {system}, {available_cores()} cores"
    is_old = sys.version_info < OLDEST
    yield (
        problem("python", finding, "use Python 3.11 or newer") if is_old else ok("python", finding)
    )


def packages() -> Iterator[Check]:
    """Check that all packages are installed, and list their versions."""
    installed = {
        name: package_version
        for name in ("hybrid-search", *NEEDED, *OPTIONAL)
        if (package_version := _version(name))
    }
    finding = ", ".join(f"{name} {package_version}" for name, package_version in installed.items())
    missing = [name for name in NEEDED if name not in installed]
    yield (
        problem("packages", f"missing: {', '.join(missing)}", "pip install hybrid-search")
        if missing
        else ok("packages", finding)
    )


def runtime() -> Iterator[Check]:
    """Check that exactly one package of ONNX Runtime is installed."""
    installed = [
        f"{name} {package_version}" for name in RUNTIMES if (package_version := _version(name))
    ]
    if len(installed) > 1:
        yield problem(
            "onnxruntime",
            f"{' and '.join(installed)} are both installed, and only one of them works",
            "pip uninstall both, then install hybrid-search[cpu] or hybrid-search[gpu]",
        )
    elif not installed:
        yield problem(
            "onnxruntime",
            "not installed",
            "pip install 'hybrid-search[cpu]', or 'hybrid-search[gpu]' on a machine with CUDA",
        )
    else:
        yield ok("onnxruntime", f"{installed[0]}, with {', '.join(devices.list_providers())}")


def device(name: str) -> Iterator[Check]:
    """Check the device that the encoder would run on; it may raise DeviceError or UsageError."""
    selected = devices.Device.choose(name, devices.list_providers())
    finding = f"{name} runs on {selected.provider}"
    idle = not selected.is_accelerated and name == "auto" and shutil.which("nvidia-smi")
    remedy = (
        "install hybrid-search[gpu] instead of [cpu] to use the GPU, "
        "or set HYBRID_SEARCH_DEVICE=cpu to keep using the CPU"
    )
    yield (
        warning("device", f"{finding}, although an NVIDIA driver is installed", remedy)
        if idle
        else ok("device", finding)
    )


def cache() -> Iterator[Check]:
    """Check that the cache folder, which holds graphs in other precisions, can be written."""
    folder = cache_folder()
    try:
        finding = check_writable(folder)
    except OSError as error:
        yield warning(
            "cache",
            f"{folder}: {error.strerror}",
            "set HYBRID_SEARCH_CACHE to a folder that can be written: "
            "until then every process converts the model again",
        )
    else:
        yield ok("cache", finding)


def check_writable(folder: Path) -> str:
    """Return a sentence that says that `folder` can be written, and how much space is free.

    A folder that does not exist passes if it could be made; otherwise this raises OSError.
    """
    existing_folder = next(
        parent for parent in (folder, *folder.absolute().parents) if parent.exists()
    )
    with tempfile.TemporaryFile(dir=existing_folder):
        pass
    free = shutil.disk_usage(existing_folder).free
    state = "can be written" if existing_folder == folder else "can be made"
    return f"{folder} {state}, {free / 1e9:,.1f} GB free"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
