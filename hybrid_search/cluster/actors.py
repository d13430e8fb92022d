"""Some equal actors of a Ray cluster, and a stream of jobs that they share.

These are actors of Ray's core, not of Ray Data, which expects sources that can be read again, and
has none that is an iterator of this process. Fed through a queue and a task that empties it, Ray
Data 2.60 kept the order, but read 99 of 100 blocks before it encoded the first (73, with blocks of
one row), needed a core more than its actors, and when that task was killed went on with 27 blocks
lost and no error. Here each actor has `AHEAD` jobs under way, and this process keeps a job until
its result is there.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar

from hybrid_search import config
from hybrid_search.encoder.devices import DEVICES
from hybrid_search.errors import HybridSearchError, MissingExtraError, UsageError, WorkerError
from hybrid_search.system import install_command

T = TypeVar("T")

AHEAD = 3
"""Jobs under way for each actor: one running, one waiting, one on its way back."""

RETRIES = 3
"""How often a job is tried again if its actor dies. Ray restarts the actor each time; a job that
kills every actor must not go on for ever.
"""


class Actors:
    """Equal actors on the cluster that this process joins, used in a ``with`` block.

    The end of the block frees the actors' resources, and leaves the cluster if it was joined here.

    Args:
        worker: The class whose instances the actors hold.
        make_arguments: Returns the arguments of its constructor for the device that was allocated.
        device: One of `hybrid_search.encoder.devices.DEVICES`.
        workers: The number of actors; None for as many as the cluster has room for.

    Raises:
        MissingExtraError: If Ray is not installed.
        UsageError: If the cluster has no room for them.
        WorkerError: If the cluster cannot be joined.
    """

    def __init__(
        self,
        worker: type[Any],
        make_arguments: Callable[[str], tuple[Any, ...]],
        device: str,
        workers: int | None,
    ) -> None:
        self._ray = import_ray()
        self._owns_cluster = join_cluster(self._ray)
        self._actors: list[Any] = []
        self._arguments: list[Any] = []
        try:
            resources = self._ray.cluster_resources()
            count, own_device, resources_of_one = allocate_workers(resources, device, workers)
            actor = self._ray.remote(worker).options(
                **resources_of_one,
                max_restarts=-1,
                max_task_retries=RETRIES,
                scheduling_strategy="SPREAD",
            )
            # stored once in the cluster, and as long as an actor may be restarted with them
            self._arguments += map(self._ray.put, make_arguments(own_device))
            self._actors += [actor.remote(*self._arguments) for _ in range(count)]
        except BaseException:
            self.close()
            raise

    def call_all(self, method: str) -> list[Any]:
        """Call a method without arguments in each actor, and return the results."""
        references = [getattr(actor, method).remote() for actor in self._actors]
        return list(map(self._fetch, references))

    def map(self, method: str, jobs: Iterable[tuple[T, Any]]) -> Iterator[tuple[T, Any]]:
        """Yield each job with the method's result for its argument, in the order of `jobs`.

        `jobs` are pairs of a job, which stays in this process, and the method's argument. Only a
        few are taken ahead. Arrays in a result are in memory that Ray's processes share: they are
        not copied on their way here, and are read-only.

        An error of this project in an actor is raised here; any other becomes a WorkerError.
        """
        pending_jobs: deque[tuple[T, Any]] = deque()
        actor_numbers: dict[Any, int] = {}
        for job, argument in jobs:
            number = self._find_idlest(actor_numbers)
            reference = getattr(self._actors[number], method).remote(argument)
            actor_numbers[reference] = number
            pending_jobs.append((job, reference))
            if len(pending_jobs) == AHEAD * len(self._actors):
                first_job, reference = pending_jobs.popleft()
                yield first_job, self._fetch(reference)
                del actor_numbers[reference]
        for job, reference in pending_jobs:
            yield job, self._fetch(reference)

    def _find_idlest(self, actor_numbers: Mapping[Any, int]) -> int:
        """Return the number of the actor with the fewest unfinished jobs.

        An actor that was restarted, or is on a slower machine, thus gets fewer.
        """
        references = list(actor_numbers)
        if not references:
            return 0
        _, unfinished = self._ray.wait(references, num_returns=len(references), timeout=0)
        load = Counter(actor_numbers[reference] for reference in unfinished)
        return min(range(len(self._actors)), key=lambda number: load[number])

    def _fetch(self, reference: Any) -> Any:
        """Return the result of a call, or raise its error as an error of this project."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.RayTaskError as error:
            if isinstance(error.cause, HybridSearchError):
                raise error.cause from None
            raise WorkerError(
                f"a Ray worker failed: {error.cause!r}. "
                "What was written stays: run the same command again to go on from there"
            ) from error
        except errors.RayError as error:
            message = str(error).partition("\n")[0]
            raise WorkerError(
                f"a Ray worker died {RETRIES + 1} times, or cannot be reached: {message} "
                "Check the logs of the cluster"
            ) from error

    def close(self) -> None:
        """End the actors, and leave the cluster if this process joined it."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors, self._arguments = [], []
        if self._owns_cluster:
            self._ray.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def allocate_workers(
    resources: Mapping[str, float], device: str, workers: int | None
) -> tuple[int, str, Mapping[str, int]]:
    """Return how many workers there are, their device, and the resources of each.

    It is one worker a GPU if the device allows it and the cluster has any, else one a core.

    Raises:
        UsageError: If the device is unknown, or the cluster has no room for the workers.
    """
    if device not in DEVICES:
        raise UsageError(
            f"device {device!r} is not one of {', '.join(DEVICES)}: "
            "the Ray cluster chooses which card a worker has"
        )
    gpus = device in ("cuda", "tensorrt") or (device == "auto" and resources.get("GPU", 0) >= 1)
    kind = "GPU" if gpus else "CPU"
    available = int(resources.get(kind, 0))
    count = available if workers is None else workers
    if not 1 <= count <= available:
        raise UsageError(
            f"{max(count, 1)} workers need one {kind} each, but the Ray cluster has "
            f"{available}: request fewer, or another device"
        )
    if gpus:
        gpu_device = "cuda" if device == "auto" else device
        return count, gpu_device, {"num_gpus": 1, "num_cpus": 0}
    return count, "cpu", {"num_cpus": 1}


def import_ray() -> Any:
    """Return the library `ray`; raise MissingExtraError if it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError(
            f"Ray is not installed: {install_command('cpu', 'ray')}, "
            "or [gpu,ray] on machines with CUDA"
        ) from error
    return ray


def join_cluster(ray: Any) -> bool:
    """Join a cluster, unless this process is in one; return whether it has to leave it again."""
    if ray.is_initialized():
        return False
    config.disable_ray_reports()
    own_handler = signal.getsignal(signal.SIGTERM)
    try:
        # logs of workers would mix with the results on standard output
        ray.init(log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise WorkerError(
            f"the Ray cluster cannot be joined: {error}. "
            "Set RAY_ADDRESS to a running cluster, or unset it to start one here"
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, own_handler)  # Ray's handler ends the process at once
    return True
