"""A Ray cluster of two workers on this machine, for tests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import config

WORKERS = 2
CI = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "JENKINS_URL")
"""Variables of CI services: ONNX Runtime reports nothing to its makers where it sees one."""


@contextmanager
def start_cluster(home: Path) -> Iterator[Any]:
    """Start Ray with two cores, and nothing of it in the user's home folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv(config.RAY_SWITCH, "0")
        import ray

        with pytest.MonkeyPatch.context() as start:  # a cluster that knows nothing of this project
            for name in (config.ONNX_RUNTIME_SWITCH, "XDG_CACHE_HOME", *CI):
                start.delenv(name, raising=False)
            ray.init(
                num_cpus=WORKERS,
                log_to_driver=False,
                include_dashboard=False,
                object_store_memory=300_000_000,
            )
        yield ray
        ray.shutdown()


def wait_for_processes(worker: str, count: int = WORKERS, seconds: float = 60.0) -> list[int]:
    """Return the processes of the cluster's actors of a class, once there are exactly `count`.

    The first answer of a cluster may come from one actor while another still starts, and an
    actor of the last test may take a moment to end. TimeoutError is raised after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while len(processes := list_processes(worker)) != count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(processes)} {worker} run after {seconds} s, not {count}")
        time.sleep(0.05)
    return processes


def list_processes(worker: str) -> list[int]:
    """Return the processes of the cluster's actors of a class."""
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if _read_title(path).startswith(f"ray::{worker}".encode())
    ]


def _read_title(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process is gone
        return b""
