"""The head of an index: its spec, its identity, and which version of its files is the current one.

It is one small file, replaced as a whole. Nothing else says where an index lies.
"""

from __future__ import annotations

import json
import os
import secrets
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from hybrid_search.backends.crc import crc32
from hybrid_search.backends.embedded.failures import describe_damage
from hybrid_search.backends.embedded.sealed_file import sync_folder
from hybrid_search.backends.types import SCHEMA, IndexSpec
from hybrid_search.errors import DamagedIndexError, IndexStoreError
from hybrid_search.private_files import create_file, read_plain_file
from hybrid_search.text import window_policy

NAME, UNFINISHED = "head.json", "head.tmp"
FORMAT = 3
"""Version of the files of an index."""

LARGEST = 1 << 16


@dataclass(frozen=True, slots=True)
class Head:
    """What an index is.

    Attributes:
        spec: The model and settings that it was made for.
        identity: What tells it from others of its name, in hexadecimal digits.
        version: Which of its folders has its files.
        format: Version of these files.
    """

    spec: IndexSpec
    identity: str
    version: int
    format: int = FORMAT

    @classmethod
    def create(cls, spec: IndexSpec, version: int) -> Self:
        """Return the head of a new index."""
        return cls(spec, secrets.token_hex(8), version)

    def write(self, folder: Path) -> None:
        """Put this head in the place of an earlier one, and see that it reaches the disk."""
        text = json.dumps(asdict(self))
        unfinished = folder / UNFINISHED
        with os.fdopen(create_file(unfinished), "wb") as file:
            file.write(json.dumps({"head": text, "crc32": crc32(text.encode())}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(folder / NAME)
        sync_folder(folder)

    def version_folder(self, folder: Path) -> Path:
        """Return the folder of the current version in that of the index."""
        return folder / f"{self.version:06d}"


def read_head(folder: Path) -> Head | None:
    """Return the head of the index in `folder`, None if there is none.

    Raises:
        DamagedIndexError: If it is not one that was written.
        IndexStoreError: If it is of another format.
    """
    path = folder / NAME
    if not os.path.lexists(path):
        return None
    try:
        values = _parse(read_plain_file(path, LARGEST))
        formats = values["format"], values["spec"]["schema"]
        head = _build(values) if formats == (FORMAT, SCHEMA) else None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        why = f"its record of the model and policy cannot be read: {error}"
        raise DamagedIndexError(describe_damage(folder, why)) from error
    if head is None:
        raise IndexStoreError(
            f"{folder} has format {formats[0]}.{formats[1]}, and this version of the program reads "
            f"{FORMAT}.{SCHEMA}: ingest again into a new index"
        )
    return head


def _parse(data: bytes) -> dict[str, Any]:
    """Return what was written; ValueError is raised if it is not that."""
    stored = json.loads(data)
    if crc32(stored["head"].encode()) != stored["crc32"]:
        raise ValueError("its checksum differs")
    values: dict[str, Any] = json.loads(stored["head"])
    return values


def _build(values: Mapping[str, Any]) -> Head:
    spec = IndexSpec(**values["spec"])
    _check_types(spec)
    window_policy.parse(spec.policy)
    return Head(**{**values, "spec": spec})


def _check_types(spec: IndexSpec) -> None:
    for name, kind in typing.get_type_hints(IndexSpec).items():
        value = getattr(spec, name)
        if type(value) is not kind or value in ("", 0):
            raise ValueError(f"{name} is {value!r}")
