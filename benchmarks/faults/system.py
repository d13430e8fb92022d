"""Another user and other file systems, where this process has the right to them."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

NOBODY = 65534
CLONE_NEWNS = 0x00020000


@contextmanager
def become_nobody(folder: Path) -> Iterator[None]:
    """Give `folder` to nobody and be nobody, if this is root: nothing is forbidden to root."""
    if os.geteuid() != 0:
        yield
        return
    give_to_nobody(folder)
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@contextmanager
def become_root_again() -> Iterator[None]:
    """Be root for a while, inside `become_nobody`."""
    user = os.geteuid()
    if os.getuid() != 0 or user == 0:
        yield
        return
    os.seteuid(0)
    try:
        yield
    finally:
        os.seteuid(user)


def give_to_nobody(folder: Path) -> None:
    """Make nobody the owner of all that is in `folder`, if this is root."""
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


@cache
def may_mount() -> bool:
    """Return whether this process may mount, in a namespace that vanishes with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 or libc.unshare(CLONE_NEWNS) != 0:
        return False
    return _run("mount", "--make-rprivate", "/")


def mount_memory(folder: Path, kilobytes: int) -> bool:
    """Mount a file system of so many kilobytes at `folder`; return whether that was allowed."""
    folder.mkdir(exist_ok=True)
    options = f"size={kilobytes}k,mode=0777"
    return may_mount() and _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder))


def measure_kilobytes(folder: Path) -> int:
    """Return what the files of a folder take in memory, where each has pages of its own."""
    sizes = [path.stat().st_size for path in folder.rglob("*")]
    return sum(math.ceil(size / mmap.PAGESIZE) for size in sizes) * mmap.PAGESIZE // 1024 + 16


def remount(folder: Path, options: str) -> None:
    """Change the options of a mounted file system, such as ``ro`` or ``size=9m``."""
    _run("mount", "-o", f"remount,{options}", str(folder))


def unmount(folder: Path) -> None:
    """Unmount a file system, even if a file on it is still open."""
    _run("umount", "--lazy", str(folder))


def _run(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
