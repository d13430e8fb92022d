"""Where the encoder runs: the seam between the blocks that are read and their encodings. Here in this process; `ray_engine` on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol, TypeVar, runtime_checkable

from hybrid_search import telemetry
from hybrid_search.encoder.base import Encoder, EncoderInfo, Padding
from hybrid_search.errors import UsageError
from hybrid_search.ingest.encoding import Found, encoded
from hybrid_search.ingest.summary import Summary

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

    def run(self, jobs: Iterator[tuple[T, Sequence[str]]], summary: Summary) -> Iterator[tuple[T, list[Found]]]:
        """Each job with what was found of its texts, in the order of `jobs`, of which only a few are taken ahead. Seconds count into `summary`."""
        ...


@dataclass(frozen=True, slots=True)
class Local:
    """One encoder in this process."""

    encoder: Encoder

    @property
    def info(self) -> EncoderInfo:
        """What an index must know of the encoder."""
        return self.encoder.info

    def run(self, jobs: Iterator[tuple[T, Sequence[str]]], summary: Summary) -> Iterator[tuple[T, list[Found]]]:
        """See `Engine.run`."""
        padded = getattr(self.encoder, "padding", Padding())
        before = padded.cells
        for job, texts in jobs:
            with telemetry.span("ingest.encode"), summary.timed("encode"):
                found = encoded(self.encoder, texts)
            summary.cells = padded.cells - before
            yield job, found


def engine(by: Encoder | Engine) -> Engine:
    """What runs `by`."""
    return by if isinstance(by, Engine) else Local(by)


@dataclass(slots=True)
class Kept:
    """The workers of the last ingest, for the next: a cluster is joined once for all files of a folder. One ingest has them at a time."""

    lock: Lock = field(default_factory=Lock)
    engines: dict[tuple[Any, ...], Engine] = field(default_factory=dict)
    """By what it was made of: one, or none."""
    held: ExitStack = field(default_factory=ExitStack)

    @contextmanager
    def using(self, begin: Callable[..., AbstractContextManager[Engine]], *made_of: Any) -> Iterator[Engine]:
        """What ``begin(*made_of)`` gives, or gave the last time. After a block that fails it is begun anew."""
        with self.lock:
            try:
                if made_of not in self.engines:
                    self.close()
                    self.engines[made_of] = self.held.enter_context(begin(*made_of))
                yield self.engines[made_of]
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Let the workers go."""
        self.engines.clear()
        self.held.close()
