"""The head of an index: a small file with its spec, its identity, and the version of its files."""

from __future__ import annotations

import json
import os
import secrets
import typing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hybrid_search.backends.crc import crc32
from hybrid_search.backends.embedded.failures import describe_damage
from hybrid_search.backends.embedded.sealed_file import sync_folder
from hybrid_search.backends.types import SCHEMA, IndexSpec
from hybrid_search.errors import DamagedIndexError, IndexStoreError
from hybrid_search.private_files import read_plain_file, replace_file
from hybrid_search.text import window_policy

NAME = "head.json"
FORMAT = 4
"""Version of the files of an index."""

LARGEST = 1 << 26

MALFORMED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What is raised where a file does not hold what was written."""


@dataclass(frozen=True, slots=True)
class Head:
    """The model and settings of an index, and where its files are.

    Attributes:
        spec: The model and settings that it was made for.
        version: Which of its folders has its files.
        identity: Tells it from others of its name, in hexadecimal digits.
        format: Version of these files.
    """

    spec: IndexSpec
    version: int
    identity: str = field(default_factory=lambda: secrets.token_hex(8))
    format: int = FORMAT

    def write(self, folder: Path) -> None:
        """Put this head in the place of an earlier one, and see that it reaches the disk."""
        write_checked(folder / NAME, asdict(self))
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
        values = read_checked(path)
        formats = values["format"], values["spec"]["schema"]
        head = _build(values) if formats == (FORMAT, SCHEMA) else None
    except MALFORMED as error:
        why = f"its record of the model and policy cannot be read: {error}"
        raise DamagedIndexError(describe_damage(folder, why)) from error
    if head is None:
        raise IndexStoreError(
            f"{folder} has format {formats[0]}.{formats[1]}, and this version of the program reads "
            f"{FORMAT}.{SCHEMA}: ingest again into a new index"
        )
    return head


def _build(values: dict[str, Any]) -> Head:
    spec = IndexSpec(**values["spec"])
    for name, kind in typing.get_type_hints(IndexSpec).items():
        value = getattr(spec, name)
        if type(value) is not kind or value in ("", 0):
            raise ValueError(f"{name} is {value!r}")
    window_policy.parse(spec.policy)
    return Head(**{**values, "spec": spec})


def write_checked(path: Path, value: Any) -> None:
    """Write a JSON value with its checksum to a file, in place of an earlier one."""
    text = json.dumps(value)
    stored = {path.stem: text, "crc32": crc32(text.encode())}
    replace_file(path, json.dumps(stored).encode())


def read_checked(path: Path) -> Any:
    """Return what `write_checked` wrote; one of `MALFORMED` or OSError is raised if it is not."""
    stored = json.loads(read_plain_file(path, LARGEST))
    if crc32(stored[path.stem].encode()) != stored["crc32"]:
        raise ValueError("its checksum differs")
    return json.loads(stored[path.stem])
