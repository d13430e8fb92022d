"""What may become of a file or a folder: gone, empty, unreadable, a link, or something else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

FOREIGN = "precious.txt"
"""The name of a file of somebody else that a link points to, in a folder of his."""

FOREIGN_TEXT = "the only copy\n"


def make_foreign_folder(folder: Path) -> Path:
    """Return the folder of somebody else beside the store."""
    foreign = folder / "elsewhere"
    foreign.mkdir(exist_ok=True)
    (foreign / FOREIGN).write_text(FOREIGN_TEXT)
    return foreign


def _remove(path: Path, _: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _empty(path: Path, foreign: Path) -> None:
    is_folder = path.is_dir()
    _remove(path, foreign)
    if is_folder:
        path.mkdir()
    else:
        path.touch()


def _make_folder(path: Path, foreign: Path) -> None:
    _remove(path, foreign)
    path.mkdir()


def _make_file(path: Path, foreign: Path) -> None:
    _remove(path, foreign)
    path.write_text("not what you think\n")


def _make_pipe(path: Path, foreign: Path) -> None:
    _remove(path, foreign)
    os.mkfifo(path)


def _link_to_nothing(path: Path, foreign: Path) -> None:
    _remove(path, foreign)
    path.symlink_to(foreign / "nothing")


def _link_to_itself(path: Path, foreign: Path) -> None:
    _remove(path, foreign)
    path.symlink_to(path)


def _link_to_foreign(path: Path, foreign: Path) -> None:
    """Let a link point to what belongs to somebody else: his folder, or his file."""
    is_folder = path.is_dir()
    _remove(path, foreign)
    path.symlink_to(foreign if is_folder else foreign / FOREIGN)


def _move_behind_link(path: Path, foreign: Path) -> None:
    """Move the file or folder to another folder, and link to it there."""
    moved = foreign / path.name
    if path.exists():
        shutil.move(path, moved)
    path.symlink_to(moved)


def _forbid_reading(path: Path, _: Path) -> None:
    if path.exists():
        path.chmod(0)


def _forbid_writing(path: Path, _: Path) -> None:
    if path.exists():
        path.chmod(0o555 if path.is_dir() else 0o444)


Alter = Callable[[Path, Path], None]

ALTERATIONS: dict[str, Alter] = {
    "missing": _remove,
    "empty": _empty,
    "folder": _make_folder,
    "file": _make_file,
    "pipe": _make_pipe,
    "dangling link": _link_to_nothing,
    "looping link": _link_to_itself,
    "link to others": _link_to_foreign,
    "behind a link": _move_behind_link,
    "unreadable": _forbid_reading,
    "read-only": _forbid_writing,
}
"""For each name what does it to a path; the second path is the folder of somebody else."""
