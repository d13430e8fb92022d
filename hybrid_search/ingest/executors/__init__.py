"""Executors run the encoder: they turn blocks of texts into encodings, in the same order.

In this process `hybrid_search.ingest.encode` runs it, on a cluster `ray`. A new executor gets a
module here, a name in `EXECUTORS` and a line in `ClientEncoders.acquire_executor`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.errors import UsageError
from hybrid_search.ingest.summary import Summary

if TYPE_CHECKING:
    from hybrid_search.ingest.types import EncodingOrError

T = TypeVar("T")

LOCAL = "local"
EXECUTORS = (LOCAL, "ray")


def check_executor(name: str, workers: int | None) -> None:
    """Raise UsageError if the executor is unknown, or `workers` is given for the local one."""
    if name not in EXECUTORS:
        raise UsageError(f"engine {name!r} is not one of {', '.join(EXECUTORS)}")
    if name == LOCAL and workers is not None:
        raise UsageError(
            f"engine {LOCAL!r} takes no workers, but {workers} were requested: "
            "give --engine ray, or use --shard"
        )


@runtime_checkable
class Executor(Protocol):
    """An encoder of a stream of jobs."""

    @property
    def info(self) -> EncoderInfo:
        """Return the properties of the encoder that an index depends on."""
        ...

    def run(
        self, jobs: Iterator[tuple[T, Sequence[str]]], summary: Summary
    ) -> Iterator[tuple[T, list[EncodingOrError]]]:
        """Yield each job with the results of its texts, in the order of `jobs`.

        Takes only a few jobs ahead. Adds the seconds of encoding to `summary`.
        """
        ...
