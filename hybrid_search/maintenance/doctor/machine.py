"""Check this machine: Python, packages, ONNX Runtime, its devices, and the folder of a store."""

from __future__ import annotations

import platform
import shutil
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path

from hybrid_search.config import reporting_libraries
from hybrid_search.encoder import devices
from hybrid_search.maintenance.doctor.check import Check, ok, problem, warning
from hybrid_search.system import DISTRIBUTION, available_cores, install_command

PACKAGES = (
    *("numpy", "tokenizers", "numkong", "tantivy", "pydantic", "urllib3", "typer", "rich"),
    *("botocore", "prometheus-client", "opentelemetry-api", "ray", "starlette", "uvicorn"),
)
PACKAGE = "hybrid_search"
RUNTIMES = ("onnxruntime", "onnxruntime-gpu")

LOW_SPACE, MINIMUM_SPACE = 2 * 10**9, 10**8
"""Free bytes on a disk. Below the first a run may not finish, below the second it cannot start."""


def python() -> Iterator[Check]:
    """Tell the version of Python, the system, and its cores."""
    system = f"{platform.system()} {platform.machine()}"
    yield ok("python", f"{platform.python_version()} on {system}, {available_cores()} cores")


def packages() -> Iterator[Check]:
    """List the versions of the packages that matter, as a report of a fault needs them."""
    versions = ((name, _version(name)) for name in (DISTRIBUTION, *PACKAGES))
    yield ok("packages", ", ".join(f"{name} {version}" for name, version in versions if version))


def distribution() -> Iterator[Check]:
    """Check that no other distribution has files in the package ``hybrid_search``."""
    owners = {name.replace("_", "-") for name in packages_distributions().get(PACKAGE, [])}
    strangers = sorted(owners - {DISTRIBUTION})
    root = find_spec(PACKAGE)
    if strangers:
        yield problem(
            "distribution",
            f"{' and '.join(strangers)} is installed and has files in {PACKAGE} too: it and "
            f"{DISTRIBUTION} overwrite each other's",
            f"pip uninstall {' '.join(strangers)} {DISTRIBUTION}, then install {DISTRIBUTION}",
        )
    elif root is None or root.origin is None:
        yield problem(
            "distribution",
            f"{PACKAGE}/__init__.py is missing: another distribution may have removed it",
            f"pip uninstall {DISTRIBUTION}, then install it again",
        )
    else:
        yield ok("distribution", f"{PACKAGE} is that of {DISTRIBUTION}")


def telemetry() -> Iterator[Check]:
    """Check that no library reports its use to its makers."""
    reporting = reporting_libraries()
    yield (
        warning(
            "telemetry",
            f"may be sent to the makers of {' and '.join(reporting)}",
            f"set {' and '.join(reporting.values())} before the process starts",
        )
        if reporting
        else ok("telemetry", "off: nothing is sent to the makers of ONNX Runtime and Ray")
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
            f"pip uninstall both, then {install_command('cpu')} or {install_command('gpu')}",
        )
    elif not installed:
        yield problem(
            "onnxruntime",
            "not installed",
            f"{install_command('cpu')}, or {install_command('gpu')} on a machine with CUDA",
        )
    else:
        yield ok("onnxruntime", f"{installed[0]}, with {', '.join(devices.list_providers())}")


def device(name: str) -> Iterator[Check]:
    """Check the device that the encoder would run on; it may raise DeviceError or UsageError."""
    selected = devices.Device.choose(name, devices.list_providers())
    finding = f"{name} runs on {selected.provider}"
    idle = not selected.is_accelerated and name == "auto" and shutil.which("nvidia-smi")
    remedy = (
        f"{install_command('gpu')} in the place of [cpu] to use the GPU, "
        "or set HYBRID_SEARCH_DEVICE=cpu to keep using the CPU"
    )
    yield (
        warning("device", f"{finding}, although an NVIDIA driver is installed", remedy)
        if idle
        else ok("device", finding)
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def store(path: str) -> Iterator[Check]:
    """Check that the folder can be written, and how much space is free."""
    folder = Path(path).expanduser()
    existing_folder = next(
        parent for parent in (folder, *folder.absolute().parents) if parent.exists()
    )
    try:
        with tempfile.TemporaryFile(dir=existing_folder):
            pass
        free = shutil.disk_usage(existing_folder).free
    except OSError as error:
        yield problem(
            "store",
            f"{folder}: {error.strerror}",
            "let this user write there, or use another folder: --url embedded:PATH",
        )
        return
    state = "can be written" if existing_folder == folder else "can be made"
    finding = f"{folder} {state}, {free / 1e9:,.1f} GB free"
    if free < MINIMUM_SPACE:
        yield problem(
            "store",
            finding,
            "free some space: an ingest stops when the disk is full; the same command resumes it",
        )
    elif free < LOW_SPACE:
        yield warning("store", finding, "free some space: 1,000 words take about 0.11 MB")
    else:
        yield ok("store", finding)
