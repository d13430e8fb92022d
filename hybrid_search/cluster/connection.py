"""Join the Ray cluster of ``RAY_ADDRESS``, else the one on this machine, started if needed."""

from __future__ import annotations

import logging
import signal
import threading
from typing import Any

from hybrid_search import config
from hybrid_search.errors import MissingExtraError, WorkerError
from hybrid_search.system import install_command


def import_ray() -> Any:
    """Return the library `ray`.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError(
            f"Ray is not installed: {install_command('cpu', 'ray')}, "
            "or [gpu,ray] on machines with CUDA"
        ) from error
    return ray


def join_cluster(ray: Any) -> bool:
    """Join a cluster, unless this process is in one.

    Returns:
        Whether this process joined it, and has to leave it again.

    Raises:
        WorkerError: If the cluster cannot be joined.
    """
    if ray.is_initialized():
        return False
    config.disable_ray_reports()
    own_handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(
            log_to_driver=False, logging_level=logging.ERROR
        )  # logs of workers would mix with the results on standard output
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise WorkerError(
            f"the Ray cluster cannot be joined: {error}. "
            "Set RAY_ADDRESS to a running cluster, or unset it to start one here"
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, own_handler)  # Ray's handler ends the process at once
    return True
