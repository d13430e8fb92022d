"""The executor for Ray clusters, with one actor per GPU, or per core without GPUs.

Reading, shaping and writing stay in this process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
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
    """The encoder in an actor, loaded at the first call, so that a call raises errors of it."""

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
    """An `Executor` of `workers` actors on the Ray cluster in ``RAY_ADDRESS``, else a local one.

    `folder` is the model folder on every node. A ``with`` block frees the workers' resources.
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
            infos = self._actors.call_all("info")
            different = [info for info in infos if info != infos[0]]
            if different:
                raise ModelError(
                    f"the Ray workers have different models, {infos[0]} and {different[0]}: "
                    "give all nodes the same folder and device"
                )
        except BaseException:
            self._actors.close()
            raise
        self.info: EncoderInfo = infos[0]

    def run(
        self, jobs: Iterator[tuple[T, Sequence[str]]], summary: Summary
    ) -> Iterator[tuple[T, list[EncodingOrError]]]:
        """See `Executor.run`; the vectors are read-only, as they are not copied."""
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

    def __exit__(self, *_: object) -> None:
        self._actors.close()
