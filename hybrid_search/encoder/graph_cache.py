"""Graphs in other precisions, made of the one that a folder ships when they are first needed, by
the onnx packages, and kept in the user's cache.

The name of a kept file says of which graph it was made, in which precision and by which ONNX
Runtime, and ends in its own SHA-256. It is moved into place whole; one that is no longer what its
name says is made again. Whoever wants the same at the same time waits for the first.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from hybrid_search.encoder import quantization
from hybrid_search.errors import MissingExtraError, ModelError

RECIPE = 3
"""Part of the name: raised when graphs are to be made in another way, so that those of before are
not taken.
"""

REMEDY = "ask for precision='float32', which runs as it is"

_log = logging.getLogger(__name__)


def find_or_make_graph(source: Path, digest: str, precision: str, folder: Path) -> Path:
    """The graph at `source`, whose SHA-256 is `digest`, in `precision` (int8 or float16): found in
    `folder`, or made and kept there.

    Where `folder` cannot be written, it is made for this process alone, with a warning.
    Raises MissingExtraError without the package onnx, ModelError where it cannot be made.
    """
    import onnxruntime

    name = f"{digest[:16]}-{precision}-{RECIPE}-onnxruntime-{onnxruntime.__version__}"
    try:
        return _find_graph(folder, name) or _find_or_make_locked(source, precision, folder, name)
    except OSError as error:
        _log.warning(
            "%s cannot be kept, each process makes it anew (%s): let HYBRID_SEARCH_CACHE name a folder to write in",
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
            f"there is no place to make {precision} of {source} in ({error}): make room, or {REMEDY}"
        ) from error


def _find_graph(folder: Path, name: str) -> Path | None:
    """The file of this name that is what its name says."""
    return next(
        (
            path
            for path in sorted(folder.glob(f"{name}-*.onnx"))
            if path.stem == f"{name}-{_digest(path)}"
        ),
        None,
    )


def _find_or_make_locked(source: Path, precision: str, folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with _hold_lock(folder / f"{name}.lock"):
        return _find_graph(folder, name) or _make_and_store(source, precision, folder, name)


def _make_and_store(source: Path, precision: str, folder: Path, name: str) -> Path:
    """Make the graph, and put it in the place of those of this name, which are damaged."""
    started_at = time.perf_counter()
    _log.info("making the model's graph in %s, once for this machine", precision)
    with tempfile.TemporaryDirectory(prefix="hybrid_search-") as scratch:
        graph = Path(scratch) / "model.onnx"
        _convert(source, precision, graph)
        path = folder / f"{name}-{_digest(graph)}.onnx"
        _copy_atomically(graph, path)
    for damaged in folder.glob(f"{name}-*.onnx"):
        if damaged != path:
            damaged.unlink(missing_ok=True)
    _log.info("made in %.1f s: %s", time.perf_counter() - started_at, path)
    return path


def _convert(source: Path, precision: str, path: Path) -> None:
    try:
        with _preserve_logging():
            quantization.CONVERTERS[precision](source, path)
    except OSError:
        raise
    except ImportError as error:
        raise MissingExtraError(
            f"{precision} is made by the package onnx, and {error.name or error} cannot be imported: pip install 'hybrid-search[cpu]', or "
            f"'hybrid-search[gpu]' on a machine with CUDA, or {REMEDY}"
        ) from error
    except Exception as error:  # the packages' own have no common root
        raise ModelError(
            f"{source} cannot be made into {precision}: {error!r}. Export the model again, or {REMEDY}"
        ) from error


@contextmanager
def _preserve_logging() -> Iterator[None]:
    """The quantizers configure logging for the whole program where the program has not yet, and one
    says of each node what it does with it.
    """
    root, null_handler, quantizer_log = (
        logging.getLogger(),
        logging.NullHandler(),
        logging.getLogger("onnxruntime.quantization"),
    )
    level = quantizer_log.level
    root.addHandler(null_handler)
    quantizer_log.setLevel(logging.WARNING)
    try:
        yield
    finally:
        quantizer_log.setLevel(level)
        root.removeHandler(null_handler)


def _copy_atomically(file: Path, path: Path) -> None:
    """Copy `file` to `path`, on whatever disk that is, in such a way that nobody sees a half of it."""
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
    """Wait until no other thread or process is in here.

    Where the system cannot do that, two do the same work, which harms nobody.
    """
    with path.open("w") as file:
        _lock(file)
        yield


if sys.platform == "win32":

    def _lock(_: IO[str]) -> None:
        """Not needed: see `_alone`."""

else:
    import fcntl

    def _lock(file: IO[str]) -> None:
        with suppress(OSError):  # some network disks have no locks
            fcntl.flock(file, fcntl.LOCK_EX)


@cache
def _private_folder() -> Path:
    """A folder that is removed when this process ends."""
    folder = tempfile.TemporaryDirectory(prefix="hybrid_search-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
