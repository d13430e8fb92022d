"""The executor that runs the encoder on a Ray cluster: one actor a GPU, or without any one a core.

Reading, shaping and writing stay in this process.

These are actors of Ray's core, not of Ray Data, which expects sources that can be read again, and
has none that is an iterator of this process. Fed through a queue and a task that empties it, Ray
Data 2.60 kept the order, but read 99 of 100 blocks before it encoded the first (73, with blocks of
one row), needed a core more than its actors, and when that task was killed went on with 27 blocks
lost and no error. Here each worker has `AHEAD` blocks under way, and this process keeps a block
until its vectors are there.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self

from hybrid_search import config
from hybrid_search.encoder import prior_file
from hybrid_search.encoder.base import Encoder, EncoderInfo
from hybrid_search.encoder.devices import DEVICES
from hybrid_search.encoder.truncated import truncate_encoder
from hybrid_search.errors import (
    HybridSearchError,
    MissingExtraError,
    ModelError,
    UsageError,
    WorkerError,
)
from hybrid_search.ingest.encode import encode_or_isolate
from hybrid_search.ingest.executors.base import T
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import EncodingOrError
from hybrid_search.system import install_command
from hybrid_search.text.span_prior import SpanPrior

AHEAD = 3
"""Blocks under way for each worker: one that it encodes, one that waits, one on its way back."""

RETRIES = 3
"""How often a block is tried again if its worker dies. Ray restarts the worker each time; a block
that kills every worker must not go on for ever.
"""

THREADS = 1
"""Threads of a worker on a CPU: the cluster gives it one core."""


class Worker:
    """The encoder in an actor.

    The first call loads the model, so that an error of loading is the error of a call. A restarted
    actor loads it again.
    """

    def __init__(self, folder: Path, device: str, precision: str, dimension: int | None) -> None:
        self._encoder_arguments = folder, device, THREADS, precision
        self._dimension = dimension
        self._encoder: Encoder | None = None

    def info(self) -> EncoderInfo:
        """Return what an index must know of this worker's encoder."""
        return self._load_encoder().info

    def encode(self, texts: Sequence[str]) -> tuple[list[EncodingOrError], float]:
        """Return the result of each text, and the seconds that encoding took."""
        encoder, started_at = self._load_encoder(), time.perf_counter()
        return encode_or_isolate(encoder, texts), time.perf_counter() - started_at

    def _load_encoder(self) -> Encoder:
        from hybrid_search.encoder.onnx import OnnxEncoder

        self._encoder = self._encoder or truncate_encoder(
            OnnxEncoder(*self._encoder_arguments), self._dimension
        )
        return self._encoder


class RayExecutor:
    """An `Executor` of `workers` actors on a Ray cluster.

    The cluster is the one that ``RAY_ADDRESS`` names, else one that runs here or is started for
    this. `folder` is the model folder, on every node. Use it in a ``with`` block, whose end frees
    what the workers hold. Errors of loading the model are raised as they are.

    Raises:
        MissingExtraError: If Ray is not installed.
        UsageError: If there is no room for so many workers.
        WorkerError: If the cluster cannot be joined, or a worker dies.
    """

    def __init__(
        self,
        folder: Path,
        device: str,
        precision: str,
        dimension: int | None,
        workers: int | None = None,
    ) -> None:
        self._folder, self._ray = folder, _import_ray()
        self._owns_cluster, self._workers = _join_cluster(self._ray), list[Any]()
        try:
            allocation = _WorkerAllocation.from_resources(
                self._ray.cluster_resources(), device, workers
            )
            options = {
                **allocation.resources_per_worker,
                "max_restarts": -1,
                "max_task_retries": RETRIES,
                "scheduling_strategy": "SPREAD",
            }
            actor = self._ray.remote(Worker).options(**options)
            self._workers += [
                actor.remote(folder, allocation.device, precision, dimension)
                for _ in range(allocation.workers)
            ]
            info_references = [worker.info.remote() for worker in self._workers]
            self.info: EncoderInfo = _require_same_info(
                [self._fetch(reference) for reference in info_references]
            )
        except BaseException:
            self.close()
            raise

    def run(
        self, jobs: Iterator[tuple[T, Sequence[str]]], summary: Summary
    ) -> Iterator[tuple[T, list[EncodingOrError]]]:
        """Yield each job with the results of its texts, see `Executor.run`.

        The vectors are in memory that Ray's processes share: they are not copied on their way here,
        and are read-only.
        """
        pending_jobs: deque[_PendingJob[T]] = deque()
        for job, texts in jobs:
            worker = self._find_idlest(pending_jobs)
            pending_jobs.append(
                _PendingJob(job, worker, self._workers[worker].encode.remote(texts))
            )
            if len(pending_jobs) == AHEAD * len(self._workers):
                yield self._finish(pending_jobs.popleft(), summary)
        while pending_jobs:
            yield self._finish(pending_jobs.popleft(), summary)

    def _find_idlest(self, pending_jobs: Collection[_PendingJob[T]]) -> int:
        """Return the number of the worker with the fewest unfinished jobs.

        A worker that was restarted, or is on a slower machine, thus gets fewer.
        """
        references = [pending.reference for pending in pending_jobs]
        finished = (
            set(self._ray.wait(references, num_returns=len(references), timeout=0)[0])
            if references
            else set()
        )
        load = Counter(
            pending.worker for pending in pending_jobs if pending.reference not in finished
        )
        return min(range(len(self._workers)), key=lambda number: load[number])

    def _finish(self, pending: _PendingJob[T], summary: Summary) -> tuple[T, list[EncodingOrError]]:
        results, seconds = self._fetch(pending.reference)
        summary.stages["encode"] += seconds
        return pending.job, results

    def _fetch(self, reference: Any) -> Any:
        """Return the result of a call, or raise its error as one of ours."""
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
        """End the workers, and leave the cluster if this process joined it."""
        for worker in self._workers:
            self._ray.kill(worker)
        self._workers = []
        if self._owns_cluster:
            self._ray.shutdown()

    def load_prior(self, dimension: int) -> SpanPrior | None:
        """Return the model's prior of spans for a dimension, if it has one."""
        return prior_file.load(self._folder, dimension)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True, eq=False)
class _PendingJob(Generic[T]):
    job: T
    worker: int
    reference: Any


@dataclass(frozen=True, slots=True)
class _WorkerAllocation:
    """How many workers there are, on which device, and what each takes of the cluster."""

    workers: int
    device: str
    resources_per_worker: Mapping[str, int]

    @classmethod
    def from_resources(
        cls, resources: Mapping[str, float], device: str, workers: int | None
    ) -> Self:
        """Return one worker a GPU if the device allows it and the cluster has any, else one a core.

        Raises:
            UsageError: If the device is unknown, or the cluster has no room for so many workers.
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
        return cls(
            count,
            ("cuda" if device == "auto" else device) if gpus else "cpu",
            {"num_gpus": 1, "num_cpus": 0} if gpus else {"num_cpus": 1},
        )


def _require_same_info(infos: Sequence[EncoderInfo]) -> EncoderInfo:
    """Return the info that all workers share.

    Raises:
        ModelError: If two run different models, whose vectors cannot be compared.
    """
    for info in infos:
        if info != infos[0]:
            raise ModelError(
                f"the Ray workers have different models, {infos[0]} and {info}: "
                "give all nodes the same folder and device"
            )
    return infos[0]


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError(
            f"Ray is not installed: {install_command('cpu', 'ray')}, "
            "or [gpu,ray] on machines with CUDA"
        ) from error
    return ray


def _join_cluster(ray: Any) -> bool:
    """Join a cluster, unless this process is in one; return whether to leave it again."""
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
