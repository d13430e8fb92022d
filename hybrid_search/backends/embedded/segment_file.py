"""The layout of a segment's file: a header with sizes, then the arrays of `ShortCodes`.

All is little-endian. Every array begins at a multiple of `ALIGNMENT` bytes, so that a file that is
mapped into memory is used as it lies there.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded.short_codes import LAYERS, LayerCodes, ShortCodes

_HEADER = struct.Struct(f"<8sQ{2 * len(LAYERS)}Q")
_MAGIC = b"HSSHORT1"
ALIGNMENT = 64


class DamagedSegmentError(Exception):
    """A file is not the one that was written; the message says why."""


def write(codes: ShortCodes, path: Path) -> None:
    """Write short codes to a file that is there and empty, and see that they reach the disk."""
    shapes = [size for layer in codes.layers for size in layer.codes.shape]
    with path.open("rb+") as file:
        file.write(_HEADER.pack(_MAGIC, len(codes.passages), *shapes))
        arrays = [codes.passages, *(array for layer in codes.layers for array in _arrays(layer))]
        for array, (kind, _) in zip(arrays, _columns(len(codes.passages), shapes), strict=True):
            file.write(bytes(_padding(file.tell())))
            file.write(np.ascontiguousarray(array, dtype=kind).data)
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> ShortCodes:
    """Return the short codes of a file, which stays mapped as long as one of its arrays is used.

    Raises:
        DamagedSegmentError: If the file has other bytes than its header tells of.
    """
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        magic, passages, *shapes = _HEADER.unpack_from(data)
        arrays, end = _map_arrays(data, _columns(passages, shapes))
    except (struct.error, TypeError, ValueError, MemoryError) as error:
        raise DamagedSegmentError(f"{path} cannot be opened ({error})") from error
    if (magic, end) != (_MAGIC, len(data)):
        raise DamagedSegmentError(f"{path} has {len(data)} bytes, {end} by its header")
    numbers, *columns = arrays
    layers = tuple(map(LayerCodes, columns[0::2], columns[1::2]))
    if not all(map(_counts_own_windows, layers)):
        raise DamagedSegmentError(f"{path} counts other windows than it has")
    return ShortCodes(numbers, layers)


def _map_arrays(
    data: mmap.mmap, columns: Iterator[tuple[str, tuple[int, ...]]]
) -> tuple[list[NDArray[Any]], int]:
    """Return the arrays as views of `data`, and where the last one ends."""
    arrays: list[NDArray[Any]] = []
    end = _HEADER.size
    for kind, shape in columns:
        start = end + _padding(end)
        arrays.append(np.ndarray(shape, kind, data, start))
        end = start + arrays[-1].nbytes
    return arrays, end


def _columns(passages: int, shapes: list[int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield type and shape of each array, in the order of the file."""
    yield "<i8", (passages,)
    for layer, rows, row_bytes in zip(LAYERS, shapes[0::2], shapes[1::2], strict=True):
        yield "<i4", (passages,)
        yield "i1" if layer.bits == 8 else "u1", (rows, row_bytes)


def _arrays(layer: LayerCodes) -> tuple[NDArray[Any], NDArray[Any]]:
    return layer.counts, layer.codes


def _counts_own_windows(layer: LayerCodes) -> bool:
    """Return whether the counts are those of all windows, and each passage has one."""
    total = int(layer.counts.sum(dtype=np.int64))
    return total == len(layer.codes) and bool(np.all(layer.counts > 0))


def _padding(position: int) -> int:
    """Return how many bytes are missing to the next multiple of `ALIGNMENT`."""
    return -position % ALIGNMENT
