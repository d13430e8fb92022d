"""What is left to the process of an ingest whose texts are encoded elsewhere, on a card or by the workers of a cluster: the limit of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.speed.counting import Counting
from hybrid_search import encoder
from hybrid_search.backends.base import IndexSpec, Refusal
from hybrid_search.backends.server import documents
from hybrid_search.ingest.encoding import Found
from hybrid_search.ingest.engine import Local, T
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.worker import ingest
from hybrid_search.types import Entry

RUNS = 3
INDEX = "measured"


def measure(lines: Sequence[Line]) -> dict[str, float]:
    """Tokens a second of one process that reads and shapes `lines`, and of one that also makes of them what a server is sent: the best of some
    runs."""
    kept = Recorder(Local(encoder.sized(encoder.load())))
    tokens = _ingest(lines, Counting(), kept).tokens
    stores: dict[str, Callable[[], Counting]] = {"read and shaped": Counting, "read, shaped and made ready for a server": Ready}
    found: dict[str, float] = {"calls": len(lines), "tokens": tokens}
    for name, store in stores.items():
        seconds = min(_ingest(lines, store(), Replayed(kept)).seconds for _ in range(RUNS))
        found[f"{name}, tokens/s"] = round(tokens / seconds)
    return found


def _ingest(lines: Sequence[Line], store: Counting, engine: Local | Recorder | Replayed) -> Summary:
    with TemporaryDirectory() as folder:
        return ingest(lines, store, engine, INDEX, Path(folder) / "rejected.jsonl")


class Recorder:
    """An `Engine` that keeps what another finds."""

    def __init__(self, engine: Local) -> None:
        self.info, self.found = engine.info, list[list[Found]]()
        self._engine = engine

    def run(self, jobs: Iterator[tuple[T, Sequence[str]]], summary: Summary) -> Iterator[tuple[T, list[Found]]]:
        """See `Engine.run`."""
        for job, found in self._engine.run(jobs, summary):
            self.found.append(found)
            yield job, found


class Replayed:
    """An `Engine` that has what was found of the same texts before, and takes no time."""

    def __init__(self, before: Recorder) -> None:
        self.info = before.info
        self._found = before.found

    def run(self, jobs: Iterator[tuple[T, Sequence[str]]], _: Summary) -> Iterator[tuple[T, list[Found]]]:
        """See `Engine.run`."""
        return ((job, found) for (job, _), found in zip(jobs, self._found, strict=True))


class Ready(Counting):
    """Makes of each passage the JSON that a server is sent, and sends it nowhere."""

    def writer(self, index: str, spec: IndexSpec) -> Ready:
        """Itself."""
        self._spec = spec
        return super().writer(index, spec)

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Count them, too."""
        for each in entries:
            documents.to_json(documents.source(each, self._spec, "2026-01-02T03:04:05+00:00"))
        return super().write(entries)
