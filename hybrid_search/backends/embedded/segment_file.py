"""The layout of a segment's file: a header with sizes, then the arrays of `ShortCodes`.

A file with inverted lists has another magic, a second header, and their arrays after the others.

All is little-endian. Every array begins at a multiple of `ALIGNMENT` bytes, so that a file that is
mapped into memory is used as it lies there.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.embedded.short_codes import (
    LAYERS,
    WORDS,
    InvertedLists,
    LayerCodes,
    ShortCodes,
)

_HEADER = struct.Struct(f"<8sQ{2 * len(LAYERS)}Q")
_LISTS_HEADER = struct.Struct("<QQ")
"""The identity and the number of the centroids."""

_MAGIC, _LISTS_MAGIC = b"HSSHORT1", b"HSSHORT2"
ALIGNMENT = 64


Column = tuple[str, tuple[int, ...]]
"""Type and shape of an array."""


class DamagedSegmentError(Exception):
    """A file is not the one that was written; the message says why."""


def write(codes: ShortCodes, path: Path) -> None:
    """Write short codes to a file that is there and empty, and see that they reach the disk."""
    shapes = [size for layer in codes.layers for size in layer.codes.shape]
    arrays = [codes.passages, *(array for layer in codes.layers for array in _arrays(layer))]
    columns = list(_columns(len(codes.passages), shapes))
    header = _HEADER.pack(_LISTS_MAGIC if codes.lists else _MAGIC, len(codes.passages), *shapes)
    if codes.lists:
        centroids = len(codes.lists.starts) - 1
        header += _LISTS_HEADER.pack(codes.lists.identity, centroids)
        arrays += [codes.lists.starts, codes.lists.words]
        columns += _lists_columns(centroids, len(codes.lists.words))
    with path.open("rb+") as file:
        file.write(header)
        for array, (kind, _) in zip(arrays, columns, strict=True):
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
        columns, size, identity = list(_columns(passages, shapes)), _HEADER.size, 0
        if magic == _LISTS_MAGIC:
            identity, centroids = _LISTS_HEADER.unpack_from(data, size)
            columns += _lists_columns(centroids, shapes[2 * WORDS])
            size += _LISTS_HEADER.size
        arrays, end = _map_arrays(data, size, columns)
    except (struct.error, TypeError, ValueError, MemoryError) as error:
        raise DamagedSegmentError(f"{path} cannot be opened ({error})") from error
    if magic not in (_MAGIC, _LISTS_MAGIC) or end != len(data):
        raise DamagedSegmentError(f"{path} has {len(data)} bytes, {end} by its header")
    numbers, *arrays_of_layers = arrays[: 1 + 2 * len(LAYERS)]
    layers = tuple(map(LayerCodes, arrays_of_layers[0::2], arrays_of_layers[1::2]))
    lists = InvertedLists(identity, *arrays[-2:]) if magic == _LISTS_MAGIC else None
    if not all(map(_counts_own_windows, layers)):
        raise DamagedSegmentError(f"{path} counts other windows than it has")
    return ShortCodes(numbers, layers, lists)


def _map_arrays(
    data: mmap.mmap, end: int, columns: Iterable[Column]
) -> tuple[list[NDArray[Any]], int]:
    """Return the arrays after the first `end` bytes as views of `data`, and where the last ends."""
    arrays: list[NDArray[Any]] = []
    for kind, shape in columns:
        start = end + _padding(end)
        arrays.append(np.ndarray(shape, kind, data, start))
        end = start + arrays[-1].nbytes
    return arrays, end


def _columns(passages: int, shapes: list[int]) -> Iterator[Column]:
    """Yield type and shape of each array, in the order of the file."""
    yield "<i8", (passages,)
    for layer, rows, row_bytes in zip(LAYERS, shapes[0::2], shapes[1::2], strict=True):
        yield "<i4", (passages,)
        yield "i1" if layer.bits == 8 else "u1", (rows, row_bytes)


def _lists_columns(centroids: int, words: int) -> list[Column]:
    return [("<i4", (centroids + 1,)), ("<i4", (words,))]


def _arrays(layer: LayerCodes) -> tuple[NDArray[Any], NDArray[Any]]:
    return layer.counts, layer.codes


def _counts_own_windows(layer: LayerCodes) -> bool:
    """Return whether the counts are those of all windows, and each passage has one."""
    total = int(layer.counts.sum(dtype=np.int64))
    return total == len(layer.codes) and bool(np.all(layer.counts > 0))


def _padding(position: int) -> int:
    """Return how many bytes are missing to the next multiple of `ALIGNMENT`."""
    return -position % ALIGNMENT
