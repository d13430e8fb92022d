"""This machine: Python, packages, ONNX Runtime and what it runs on, and the folder for what is made
once.
"""

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
"""Bytes free on a disk: with less than the first a run may not come to its end, with less than the
second none begins.
"""


def python() -> Iterator[Check]:
    """The interpreter."""
    finding = f"{platform.python_version()} on {platform.system()} {platform.machine()}, {available_cores()} cores"
    is_old = sys.version_info < OLDEST
    yield (
        problem("python", finding, "use Python 3.11 or newer") if is_old else ok("python", finding)
    )


def packages() -> Iterator[Check]:
    """What is installed."""
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
    """ONNX Runtime: one of its packages, not both."""
    installed = [
        f"{name} {package_version}" for name in RUNTIMES if (package_version := _version(name))
    ]
    if len(installed) > 1:
        yield problem(
            "onnxruntime",
            f"{' and '.join(installed)} collide",
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
    """The device that would run. Raises DeviceError, UsageError."""
    selected = devices.Device.choose(name, devices.list_providers())
    finding = f"{name} runs on {selected.provider}"
    idle = not selected.is_accelerated and name == "auto" and shutil.which("nvidia-smi")
    remedy = "to use it install hybrid-search[gpu] in the place of [cpu]; to keep the processor set HYBRID_SEARCH_DEVICE=cpu"
    yield (
        warning("device", f"{finding}, and there is an NVIDIA driver", remedy)
        if idle
        else ok("device", finding)
    )


def cache() -> Iterator[Check]:
    """Where graphs in other precisions are kept."""
    folder = cache_folder()
    try:
        finding = check_writable(folder)
    except OSError as error:
        yield warning(
            "cache",
            f"{folder}: {error.strerror}",
            "let HYBRID_SEARCH_CACHE name a folder to write in: each process makes its graph anew",
        )
    else:
        yield ok("cache", finding)


def check_writable(folder: Path) -> str:
    """That a file can be written in `folder`, or that it could be made, and how much is free there.

    Raises OSError.
    """
    existing_folder = next(
        parent for parent in (folder, *folder.absolute().parents) if parent.exists()
    )
    with tempfile.TemporaryFile(dir=existing_folder):
        pass
    free = shutil.disk_usage(existing_folder).free
    return f"{folder} can be written{'' if existing_folder == folder else ' once it is made'}, {free / 1e9:,.1f} GB free"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
