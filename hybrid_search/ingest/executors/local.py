"""The executor that runs the encoder in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hybrid_search.encoder.base import Encoder, EncoderInfo, padding_counter
from hybrid_search.ingest.encode import encode_or_isolate
from hybrid_search.ingest.executors.base import Executor, T
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import EncodingOrError
from hybrid_search.observability import tracing


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """An executor with one encoder in this process."""

    encoder: Encoder

    @property
    def info(self) -> EncoderInfo:
        """Return the properties of the encoder that an index depends on."""
        return self.encoder.info

    def run(
        self, jobs: Iterator[tuple[T, Sequence[str]]], summary: Summary
    ) -> Iterator[tuple[T, list[EncodingOrError]]]:
        """Yield each job with the results of its texts, see `Executor.run`."""
        padding = padding_counter(self.encoder)
        cells_before = padding.cells
        for job, texts in jobs:
            with tracing.trace_block("ingest.encode"), summary.time_stage("encode"):
                results = encode_or_isolate(self.encoder, texts)
            summary.cells = padding.cells - cells_before
            yield job, results


def as_executor(encoder: Encoder | Executor) -> Executor:
    """Return `encoder` itself if it is an executor, else a local executor of it."""
    return encoder if isinstance(encoder, Executor) else LocalExecutor(encoder)
