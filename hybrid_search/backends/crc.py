"""CRC-32: it shows every change of up to three bits, and all but one in 4 billion others."""

from __future__ import annotations

try:
    from isal.isal_zlib import crc32
except ModuleNotFoundError:  # there is no wheel for this kind of machine: the same numbers, slower
    from zlib import crc32

__all__ = ["crc32"]
