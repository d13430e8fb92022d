"""A sealed file: named arrays, written once and never changed, with a checksum of each.

The arrays come first, each at a multiple of `ALIGNMENT` bytes, to be used as they are mapped into
memory. Then a footer of JSON says where they are, and a trailer where it is. All is little-endian.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.crc import crc32
from hybrid_search.private_files import create_file, write_all

ALIGNMENT = 64
MAGIC = b"HSSEAL01"
_TRAILER = struct.Struct("<QI8s")
"""Length and CRC-32 of the footer, and `MAGIC`."""


class DamagedFileError(Exception):
    """A file is not the one that was written; the message says why."""


class SealedFileWriter:
    """Writes a sealed file under the name `unfinished`; `position` bytes have been written."""

    def __init__(self, unfinished: Path) -> None:
        self._unfinished = unfinished
        self._file = FileIO(create_file(unfinished), "wb")
        self._sections: dict[str, dict[str, Any]] = {}
        self.position = 0

    def write(self, data: bytes) -> None:
        """Append bytes that no section describes."""
        write_all(self._file, data)
        self.position += len(data)

    def cut(self, position: int) -> None:
        """Take back what was written behind a position."""
        self._file.truncate(position)
        self._file.seek(position)
        self.position = position

    def add(self, name: str, array: NDArray[Any]) -> None:
        """Append an array as a section."""
        self.write(bytes(-self.position % ALIGNMENT))
        data = array.tobytes()
        self._sections[name] = {
            "start": self.position,
            "dtype": array.dtype.str,
            "shape": array.shape,
            "crc32": crc32(data),
        }
        self.write(data)

    def seal(self, path: Path, facts: Mapping[str, Any]) -> None:
        """Write the footer with `facts`, see that all is on the disk, and name the file `path`."""
        footer = json.dumps({"facts": facts, "sections": self._sections}).encode()
        self.write(footer)
        self.write(_TRAILER.pack(len(footer), crc32(footer), MAGIC))
        os.fsync(self._file.fileno())
        self._file.close()
        self._unfinished.replace(path)
        sync_folder(path.parent)

    def discard(self) -> None:
        """Remove the file, unless it was sealed."""
        if not self._file.closed:
            self._file.close()
            self._unfinished.unlink(missing_ok=True)


class SealedFile:
    """A sealed file, mapped into memory.

    `facts` are what its writer recorded of it, `data` all its bytes. DamagedFileError is raised if
    its footer, or an array, is not the one that was written.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_file():  # a pipe would wait for its writer
            raise DamagedFileError(f"{path} is not a plain file")
        try:
            with path.open("rb") as file:
                self.data: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            length, checksum, magic = _TRAILER.unpack_from(
                self.data, len(self.data) - _TRAILER.size
            )
            end = len(self.data) - _TRAILER.size
            footer = self.data[max(0, end - length) : end]
            if magic != MAGIC or crc32(footer) != checksum:
                raise DamagedFileError(f"the end of {path} is not the one that was written")
            described = json.loads(footer)
        except FileNotFoundError as error:
            raise DamagedFileError(f"{path} is missing") from error
        except (OSError, struct.error, ValueError) as error:
            raise DamagedFileError(f"{path} cannot be read ({error})") from error
        self.facts: Mapping[str, Any] = described["facts"]
        self._sections: Mapping[str, Mapping[str, Any]] = described["sections"]
        for name, section in self._sections.items():
            end = section["start"] + self.read(name).nbytes
            if crc32(memoryview(self.data)[section["start"] : end]) != section["crc32"]:
                raise DamagedFileError(f"the {name} in {path} are not those that were written")

    def read(self, name: str) -> NDArray[Any]:
        """Return an array; it is valid as long as somebody holds it."""
        section = self._sections[name]
        return np.ndarray(tuple(section["shape"]), section["dtype"], self.data, section["start"])


def sync_folder(folder: Path) -> None:
    """See that the names in a folder reach the disk, where the system can."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
