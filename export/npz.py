"""Write arrays as ``.npz``: the same arrays give the same bytes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The date of all members: the first that a zip file can have."""


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays by name; `numpy.load` reads them with ``allow_pickle=False``."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in sorted(arrays):
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", EARLIEST), _format(arrays[name]))
    path.write_bytes(content.getvalue())


def _format(array: NDArray[Any]) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, np.asarray(array, order="C"), allow_pickle=False)
    return content.getvalue()
