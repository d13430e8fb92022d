"""The user that a server runs as: ``nobody`` if we are root, otherwise ourselves.

The servers refuse to be run by root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from tools.servers.catalog import StartError

NAME = "nobody"


def command() -> list[str]:
    """Return what to put before a server's command: it changes the user, if that is needed.

    It also has the system end the server when its guard is gone. Without setpriv it is empty.

    Raises:
        StartError: If we are root and setpriv is missing.
    """
    if not shutil.which("setpriv"):
        if _is_root():
            raise StartError(
                "servers cannot run as root, and setpriv (util-linux), which changes the user, "
                "is not on the PATH: install it, or run this as another user"
            )
        return []
    return ["setpriv", "--pdeathsig", "KILL", *(_nobody_options() if _is_root() else [])]


def own(folder: Path) -> None:
    """Give a folder with all its files to the server's user alone: it may hold keys."""
    folder.chmod(0o700)
    if _is_root():
        user = pwd.getpwnam(NAME)
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, user.pw_uid, user.pw_gid)


def can_read(path: Path) -> bool:
    """Tell whether the server's user can read `path`: root's checkout may be closed to others."""
    return (
        not _is_root()
        or subprocess.run([*command(), "test", "-r", str(path)], check=False).returncode == 0
    )


def _is_root() -> bool:
    return os.geteuid() == 0


def _nobody_options() -> list[str]:
    user = pwd.getpwnam(NAME)
    return ["--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups"]
