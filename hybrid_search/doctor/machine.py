"""This machine: Python, packages, ONNX Runtime and what it runs on, and the folder for what is made once."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hybrid_search.config import cache_folder
from hybrid_search.doctor.check import Check, ok, problem, warning
from hybrid_search.encoder import devices

OLDEST = (3, 11)
NEEDED = ("numpy", "tokenizers", "usearch", "pydantic", "opensearch-py", "typer", "rich")
OPTIONAL = ("onnx", "onnx-ir", "elasticsearch", "botocore", "prometheus-client", "opentelemetry-api", "ray")
RUNTIMES = ("onnxruntime", "onnxruntime-gpu")

LITTLE, NO_ROOM = 2 * 10**9, 10**8
"""Bytes free on a disk: with less than the first a run may not come to its end, with less than the second none begins."""


def python() -> Iterator[Check]:
    """The interpreter."""
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()}, {_cores()} cores"
    old = sys.version_info < OLDEST
    yield problem("python", found, "use Python 3.11 or newer") if old else ok("python", found)


def packages() -> Iterator[Check]:
    """What is installed."""
    there = {name: found for name in ("hybrid-search", *NEEDED, *OPTIONAL) if (found := _version(name))}
    said = ", ".join(f"{name} {found}" for name, found in there.items())
    missing = [name for name in NEEDED if name not in there]
    yield problem("packages", f"missing: {', '.join(missing)}", "pip install hybrid-search") if missing else ok("packages", said)


def runtime() -> Iterator[Check]:
    """ONNX Runtime: one of its packages, not both."""
    there = [f"{name} {found}" for name in RUNTIMES if (found := _version(name))]
    if len(there) > 1:
        yield problem("onnxruntime", f"{' and '.join(there)} collide", "pip uninstall both, then install hybrid-search[cpu] or hybrid-search[gpu]")
    elif not there:
        yield problem("onnxruntime", "not installed", "pip install 'hybrid-search[cpu]', or 'hybrid-search[gpu]' on a machine with CUDA")
    else:
        yield ok("onnxruntime", f"{there[0]}, with {', '.join(devices.offered())}")


def device(asked: str) -> Iterator[Check]:
    """The device that would run. Raises DeviceError, UsageError."""
    chosen = devices.Device.choose(asked, devices.offered())
    found = f"{asked} runs on {chosen.provider}"
    idle = not chosen.accelerated and asked == "auto" and shutil.which("nvidia-smi")
    remedy = "to use it install hybrid-search[gpu] in the place of [cpu]; to keep the processor set HYBRID_SEARCH_DEVICE=cpu"
    yield warning("device", f"{found}, and there is an NVIDIA driver", remedy) if idle else ok("device", found)


def cache() -> Iterator[Check]:
    """Where graphs in other precisions are kept."""
    folder = cache_folder()
    try:
        found = written(folder)
    except OSError as error:
        yield warning("cache", f"{folder}: {error.strerror}", "let HYBRID_SEARCH_CACHE name a folder to write in: each process makes its graph anew")
    else:
        yield ok("cache", found)


def written(folder: Path) -> str:
    """That a file can be written in `folder`, or that it could be made, and how much is free there. Raises OSError."""
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    with tempfile.TemporaryFile(dir=there):
        pass
    free = shutil.disk_usage(there).free
    return f"{folder} can be written{'' if there == folder else ' once it is made'}, {free / 1e9:,.1f} GB free"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
