"""Make graphs in other precisions when they are first needed, and cache them for the user.

A cached file's name says from which graph it was made, in which precision, for which ONNX Runtime
and kind of processor, and ends in the file's own SHA-256. It is moved into place whole, and made
again if it no longer matches its name. A second process that needs the same graph waits for the
first.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from hybrid_search.encoder import quantization
from hybrid_search.encoder.quantization import saturates
from hybrid_search.errors import MissingExtraError, ModelError
from hybrid_search.private_files import open_lock_file
from hybrid_search.system import (
    file_digest,
    install_command,
    lock_exclusively,
)

RECIPE = 4
"""Version of how graphs are made, part of the file name: older graphs are then not used."""

REMEDY = "use precision='float32', which needs no conversion"

_log = logging.getLogger(__name__)


def find_or_make_graph(source: Path, digest: str, precision: str, folder: Path) -> Path:
    """Return the path of the graph at `source` in `precision` (int8 or float16).

    It is looked up in `folder`, or made and stored there. If `folder` cannot be written, it is made
    for this process alone, with a warning. `digest` is that of `source` and of the
    weights beside it. Raises MissingExtraError without the package onnx.

    Raises:
        ModelError: If the graph cannot be made, or no folder can hold it.
    """
    import onnxruntime

    kind = f"{precision}-unsigned" if precision == "int8" and saturates() else precision
    name = f"{digest[:16]}-{kind}-{RECIPE}-onnxruntime-{onnxruntime.__version__}"
    try:
        return _find_graph(folder, name) or _find_or_make_locked(source, precision, folder, name)
    except OSError as error:
        _log.warning(
            "the %s graph cannot be cached, so each process makes its own (%s): "
            "set HYBRID_SEARCH_CACHE to a writable folder",
            precision,
            error,
        )
    try:
        private_folder = _private_folder()
        return _find_graph(private_folder, name) or _find_or_make_locked(
            source, precision, private_folder, name
        )
    except OSError as error:
        raise ModelError(
            f"no folder can hold the {precision} graph of {source} ({error}): "
            f"free some space, or {REMEDY}"
        ) from error


def _find_graph(folder: Path, name: str) -> Path | None:
    """Return the file of this name whose content matches the digest in its name."""
    for path in sorted(folder.glob(f"{name}-*.onnx")):
        if path.stem == f"{name}-{file_digest(path)}":
            return path
    return None


def _find_or_make_locked(source: Path, precision: str, folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with _hold_lock(folder / f"{name}.lock"):
        return _find_graph(folder, name) or _make_and_store(source, precision, folder, name)


def _make_and_store(source: Path, precision: str, folder: Path, name: str) -> Path:
    """Make the graph and put it in place of others of this name, which are damaged."""
    started_at = time.perf_counter()
    _log.info("making the model's %s graph, once for this machine", precision)
    with tempfile.TemporaryDirectory(prefix="hybrid_search-") as scratch:
        graph = Path(scratch) / "model.onnx"
        _convert(source, precision, graph)
        path = folder / f"{name}-{file_digest(graph)}.onnx"
        _copy_atomically(graph, path)
    own_name = re.compile(rf"{re.escape(name)}-[0-9a-f]{{64}}\.onnx")
    for damaged in folder.glob(f"{name}-*.onnx"):
        if damaged != path and own_name.fullmatch(damaged.name):
            damaged.unlink(missing_ok=True)
    _log.info("made the graph in %.1f s: %s", time.perf_counter() - started_at, path)
    return path


def _convert(source: Path, precision: str, path: Path) -> None:
    try:
        with _preserve_logging():
            quantization.CONVERTERS[precision](source, path)
    except OSError:
        raise
    except ImportError as error:
        raise MissingExtraError(
            f"a {precision} graph is made by the package onnx, but {error.name or error} cannot be "
            f"imported: {install_command('cpu')}, or {install_command('gpu')} on a machine with "
            f"CUDA, or {REMEDY}"
        ) from error
    except Exception as error:  # the packages' exceptions have no common base
        raise ModelError(
            f"{source} cannot be converted to {precision}: {error!r}. "
            f"Export the model again, or {REMEDY}"
        ) from error


@contextmanager
def _preserve_logging() -> Iterator[None]:
    """Keep the quantizers from changing the program's logging.

    They configure logging for the whole program if the program has not yet, and one of them logs
    every node.
    """
    root, null_handler = logging.getLogger(), logging.NullHandler()
    quantizer_log = logging.getLogger("onnxruntime.quantization")
    level = quantizer_log.level
    root.addHandler(null_handler)
    quantizer_log.setLevel(logging.WARNING)
    try:
        yield
    finally:
        quantizer_log.setLevel(level)
        root.removeHandler(null_handler)


def _copy_atomically(file: Path, path: Path) -> None:
    """Copy `file` to `path`, possibly on another disk, so that nobody sees half of it."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as part:
        try:
            with file.open("rb") as source:
                shutil.copyfileobj(source, part)
            part.close()
            Path(part.name).replace(path)
        except OSError:
            Path(part.name).unlink(missing_ok=True)
            raise


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock file at `path`, after waiting for any other thread or process.

    If the system has no such locks, two processes do the same work, which does no harm.
    """
    descriptor = open_lock_file(path)
    try:
        with suppress(OSError):  # some network disks have no locks
            lock_exclusively(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


@cache
def _private_folder() -> Path:
    """Return a folder that is removed when this process ends."""
    folder = tempfile.TemporaryDirectory(prefix="hybrid_search-")
    atexit.register(folder.cleanup)
    return Path(folder.name)
