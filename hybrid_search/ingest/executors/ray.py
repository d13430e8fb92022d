"""The executor for Ray clusters, with one actor per GPU, or per core without GPUs.

Reading, shaping and writing stay in this process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hybrid_search.cluster.actors import Actors
from hybrid_search.encoder import codebook_file, prior_file
from hybrid_search.encoder.base import Encoder, EncoderInfo
from hybrid_search.encoder.truncated import truncate_encoder
from hybrid_search.errors import ModelError
from hybrid_search.ingest.encode import encode_or_isolate
from hybrid_search.ingest.executors import T
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import EncodingOrError
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Codebook

THREADS = 1
"""Threads of a CPU worker: the cluster gives it one core."""


class Worker:
    """The encoder in an actor.

    The first call loads the model, so a loading error is raised by a call. A restarted actor loads
    it again.
    """

    def __init__(self, folder: Path, device: str, precision: str, dimension: int | None) -> None:
        self._encoder_arguments = folder, device, THREADS, precision
        self._dimension = dimension
        self._encoder: Encoder | None = None

    def info(self) -> EncoderInfo:
        """Return the properties of this worker's encoder that an index depends on."""
        return self._load_encoder().info

    def encode(self, texts: Sequence[str]) -> tuple[list[EncodingOrError], float]:
        """Return the result for each text, and how many seconds encoding took."""
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

    The cluster is the one in ``RAY_ADDRESS``, else a local one, which is started if necessary.
    `folder` is the model folder on every node. Use it in a ``with`` block, which frees the workers'
    resources. Errors of `Actors` and of loading the model propagate.
    """

    def __init__(
        self,
        folder: Path,
        device: str,
        precision: str,
        dimension: int | None,
        workers: int | None = None,
    ) -> None:
        def make_arguments(device: str) -> tuple[Any, ...]:
            return folder, device, precision, dimension

        self._folder = folder
        self._actors = Actors(Worker, make_arguments, device, workers)
        try:
            self.info: EncoderInfo = _require_same_info(self._actors.call_all("info"))
        except BaseException:
            self._actors.close()
            raise

    def run(
        self, jobs: Iterator[tuple[T, Sequence[str]]], summary: Summary
    ) -> Iterator[tuple[T, list[EncodingOrError]]]:
        """Yield each job with the results of its texts, see `Executor.run`.

        The vectors are read-only, as they are not copied.
        """
        for job, (results, seconds) in self._actors.map("encode", jobs):
            summary.stages["encode"] += seconds
            yield job, results

    def load_prior(self, dimension: int) -> SpanPrior | None:
        """Return the model's span prior for a dimension, if it has one."""
        return prior_file.load(self._folder, dimension)

    def load_codebook(self, dimension: int) -> Codebook:
        """Return the model's codebook for a dimension."""
        return codebook_file.load(self._folder, dimension)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._actors.close()


def _require_same_info(infos: Sequence[EncoderInfo]) -> EncoderInfo:
    """Return the info that all workers share.

    Raises:
        ModelError: If two workers run different models, whose vectors cannot be compared.
    """
    for info in infos:
        if info != infos[0]:
            raise ModelError(
                f"the Ray workers have different models, {infos[0]} and {info}: "
                "give all nodes the same folder and device"
            )
    return infos[0]
