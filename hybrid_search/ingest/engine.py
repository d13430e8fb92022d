"""Where the encoder runs: the seam between the blocks that are read and their encodings. Here in this process; `ray_engine` on a cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from hybrid_search.encoder.base import Encoder, EncoderInfo
from hybrid_search.errors import UsageError
from hybrid_search.types import Encoding

T = TypeVar("T")

LOCAL = "local"
ENGINES = (LOCAL, "ray")


def checked(name: str, workers: int | None) -> None:
    """Raise UsageError for an engine that is none, or that has no workers to be counted."""
    if name not in ENGINES:
        raise UsageError(f"engine {name!r} is not one of {', '.join(ENGINES)}")
    if name == LOCAL and workers is not None:
        raise UsageError(f"{workers} workers were asked for, and engine {LOCAL!r} has none: give --engine ray, or use --shard")


@runtime_checkable
class Engine(Protocol):
    """Encodes a stream of jobs."""

    @property
    def info(self) -> EncoderInfo:
        """What an index must know of the encoder that runs."""
        ...

    def run(self, jobs: Iterator[tuple[T, Sequence[str]]]) -> Iterator[tuple[T, list[Encoding], float]]:
        """Each job with the encodings of its texts and the seconds that they took, in the order of `jobs`, of which only a few are taken ahead."""
        ...


@dataclass(frozen=True, slots=True)
class Local:
    """One encoder in this process."""

    encoder: Encoder

    @property
    def info(self) -> EncoderInfo:
        """What an index must know of the encoder."""
        return self.encoder.info

    def run(self, jobs: Iterator[tuple[T, Sequence[str]]]) -> Iterator[tuple[T, list[Encoding], float]]:
        """See `Engine.run`."""
        for job, texts in jobs:
            began = time.perf_counter()
            encodings = self.encoder.encode(texts)
            yield job, encodings, time.perf_counter() - began


def engine(by: Encoder | Engine) -> Engine:
    """What runs `by`."""
    return by if isinstance(by, Engine) else Local(by)
