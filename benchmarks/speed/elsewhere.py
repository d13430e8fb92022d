"""Time the process of an ingest whose texts are encoded elsewhere, on a GPU or by a cluster.

What remains of the work is the limit of one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.speed.counting import CountingStore
from hybrid_search import encoder
from hybrid_search.backends.server import passage_codec
from hybrid_search.backends.server.graph_vectors import GraphVectors
from hybrid_search.backends.types import IndexSpec, Refusal
from hybrid_search.config import DEFAULT_GRAPH_DIMENSION
from hybrid_search.ingest.encode import LocalExecutor
from hybrid_search.ingest.executors import T
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.pipeline import ingest
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import EncodingOrError, SourceLine
from hybrid_search.text.types import Entry

RUNS = 3
INDEX = "measured"
WRITTEN_AT = "2026-01-02T03:04:05+00:00"
GRAPH = GraphVectors(DEFAULT_GRAPH_DIMENSION, are_bytes=True)


def measure(lines: Sequence[SourceLine]) -> dict[str, float]:
    """Return tokens a second of one process that reads and shapes `lines`, the best of some runs.

    Once without more, and once with the making of what a server is sent.
    """
    recorder = Recorder(LocalExecutor(encoder.truncate_encoder(encoder.load())))
    tokens = _ingest(lines, CountingStore(), recorder).tokens
    stores: dict[str, Callable[[], CountingStore]] = {
        "read and shaped": CountingStore,
        "read, shaped and made ready for a server": PreparingStore,
    }
    rates: dict[str, float] = {"calls": len(lines), "tokens": tokens}
    for name, store in stores.items():
        seconds = min(_ingest(lines, store(), Replayer(recorder)).seconds for _ in range(RUNS))
        rates[f"{name}, tokens/s"] = round(tokens / seconds)
    return rates


def _ingest(
    lines: Sequence[SourceLine], store: CountingStore, engine: LocalExecutor | Recorder | Replayer
) -> Summary:
    with TemporaryDirectory() as folder:
        return ingest(lines, store, engine, IngestOptions(INDEX, Path(folder) / "rejected.jsonl"))


class Recorder:
    """An executor that remembers the encodings of another."""

    def __init__(self, engine: LocalExecutor) -> None:
        self.info, self.encodings_by_job = engine.info, list[list[EncodingOrError]]()
        self._engine = engine

    def run(
        self, jobs: Iterator[tuple[T, Sequence[str]]], summary: Summary
    ) -> Iterator[tuple[T, list[EncodingOrError]]]:
        """See `Executor.run`."""
        for job, encodings in self._engine.run(jobs, summary):
            self.encodings_by_job.append(encodings)
            yield job, encodings


class Replayer:
    """An executor that returns remembered encodings of the same texts, and takes no time."""

    def __init__(self, recorder: Recorder) -> None:
        self.info = recorder.info
        self._encodings_by_job = recorder.encodings_by_job

    def run(
        self, jobs: Iterator[tuple[T, Sequence[str]]], _: Summary
    ) -> Iterator[tuple[T, list[EncodingOrError]]]:
        """See `Executor.run`."""
        return (
            (job, encodings)
            for (job, _), encodings in zip(jobs, self._encodings_by_job, strict=True)
        )


class PreparingStore(CountingStore):
    """Makes of each passage the JSON that a server is sent, and sends it nowhere."""

    def writer(self, index: str, spec: IndexSpec) -> PreparingStore:
        """Return itself."""
        self._spec = spec
        return super().writer(index, spec)

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Make the JSON of the entries, and count them."""
        for entry in entries:
            source = passage_codec.build_source(entry, self._spec, WRITTEN_AT, GRAPH)
            passage_codec.to_json(source)
        return super().write(entries)
