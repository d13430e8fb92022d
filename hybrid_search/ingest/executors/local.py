"""Where the encoder runs: the seam between the blocks that are read and their encodings.

Here in this process; `ray_engine` on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol, TypeVar, runtime_checkable

from hybrid_search.encoder.base import Encoder, EncoderInfo, padding_counter
from hybrid_search.errors import UsageError
from hybrid_search.ingest.encode import EncodingOrError, encode_or_isolate
from hybrid_search.ingest.summary import Summary
from hybrid_search.observability import tracing

T = TypeVar("T")

LOCAL = "local"
EXECUTORS = (LOCAL, "ray")


def check_executor(name: str, workers: int | None) -> None:
    """Raise UsageError for an engine that is none, or that has no workers to be counted."""
    if name not in EXECUTORS:
        raise UsageError(f"engine {name!r} is not one of {', '.join(EXECUTORS)}")
    if name == LOCAL and workers is not None:
        raise UsageError(
            f"{workers} workers were asked for, and engine {LOCAL!r} has none: give --engine ray, or use --shard"
        )


@runtime_checkable
class Executor(Protocol):
    """Encodes a stream of jobs."""

    @property
    def info(self) -> EncoderInfo:
        """What an index must know of the encoder that runs."""
        ...

    def run(
        self, jobs: Iterator[tuple[T, Sequence[str]]], summary: Summary
    ) -> Iterator[tuple[T, list[EncodingOrError]]]:
        """Each job with what was found of its texts, in the order of `jobs`, of which only a few
        are taken ahead.

        Seconds count into `summary`.
        """
        ...


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """One encoder in this process."""

    encoder: Encoder

    @property
    def info(self) -> EncoderInfo:
        """What an index must know of the encoder."""
        return self.encoder.info

    def run(
        self, jobs: Iterator[tuple[T, Sequence[str]]], summary: Summary
    ) -> Iterator[tuple[T, list[EncodingOrError]]]:
        """See `Engine.run`."""
        padding = padding_counter(self.encoder)
        cells_before = padding.cells
        for job, texts in jobs:
            with tracing.trace_block("ingest.encode"), summary.time_stage("encode"):
                results = encode_or_isolate(self.encoder, texts)
            summary.cells = padding.cells - cells_before
            yield job, results


def as_executor(encoder: Encoder | Executor) -> Executor:
    """What runs `by`."""
    return encoder if isinstance(encoder, Executor) else LocalExecutor(encoder)


@dataclass(slots=True)
class ExecutorCache:
    """The workers of the last ingest, for the next: a cluster is joined once for all files of a
    folder.

    One ingest has them at a time.
    """

    lock: Lock = field(default_factory=Lock)
    executors: dict[tuple[Any, ...], Executor] = field(default_factory=dict)
    """By what it was made of: one, or none."""
    exit_stack: ExitStack = field(default_factory=ExitStack)

    @contextmanager
    def acquire(
        self, start: Callable[..., AbstractContextManager[Executor]], *settings: Any
    ) -> Iterator[Executor]:
        """What ``begin(*made_of)`` gives, or gave the last time.

        After a block that fails it is begun anew.
        """
        with self.lock:
            try:
                if settings not in self.executors:
                    self.close()
                    self.executors[settings] = self.exit_stack.enter_context(start(*settings))
                yield self.executors[settings]
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Let the workers go."""
        self.executors.clear()
        self.exit_stack.close()
