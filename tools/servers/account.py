"""Whom a server runs as.

The servers refuse to be run by root, so for root it is ``nobody``; for everybody else, himself.
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
    """What is put before a server's command: it changes the user where it must, and has the system
    end the server when its guard is gone.
    """
    if not shutil.which("setpriv"):
        if _is_root():
            raise StartError(
                "as root, servers are started by setpriv (util-linux), which is not on the PATH: install it, or be another user"
            )
        return []
    return ["setpriv", "--pdeathsig", "KILL", *(_nobody_options() if _is_root() else [])]


def own(folder: Path) -> None:
    """Give `folder` and all in it to the server's user, and to nobody else: it may hold keys."""
    folder.chmod(0o700)
    if _is_root():
        user = pwd.getpwnam(NAME)
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, user.pw_uid, user.pw_gid)


def can_read(path: Path) -> bool:
    """Whether the server's user can read `path`: root's checkout may lie in a folder that is closed
    to others.
    """
    return (
        not _is_root()
        or subprocess.run([*command(), "test", "-r", str(path)], check=False).returncode == 0
    )


def _is_root() -> bool:
    return os.geteuid() == 0


def _nobody_options() -> list[str]:
    user = pwd.getpwnam(NAME)
    return ["--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups"]
