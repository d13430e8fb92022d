"""What a run did, counted while it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

STAGES = ("read", "encode", "shape", "write")


@dataclass(slots=True)
class Summary:
    """`failed` documents were refused and are in the rejects file; `skipped` ones were unchanged;
    `excluded` ones are not what ``--where`` asks for; `duplicates` replaced one of this run;
    `others` are lines that other shards take, and are not among those `read`.

    `resumed` lines were done before, by a checkpoint, and not read again; `stopped` says that the
    run was asked to end before its sources did.

    `stages` are seconds of work in each stage; stages overlap, so they may add up to more than
    `seconds`. `cells` are the tokens, special ones and padding included, that the encoder computed
    for `tokens` of them, 0 where it does not say. `running` says what works now, a stage and its
    thread, `queues` how many blocks wait behind a stage.
    """

    read: int = 0
    documents: int = 0
    passages: int = 0
    spans: int = 0
    failed: int = 0
    skipped: int = 0
    excluded: int = 0
    duplicates: int = 0
    others: int = 0
    resumed: int = 0
    tokens: int = 0
    cells: int = 0
    bytes: int = 0
    seconds: float = 0.0
    rejected: str | None = None
    stopped: bool = False
    stages: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    running: set[tuple[str, int]] = field(default_factory=set)
    queues: dict[str, Callable[[], int]] = field(default_factory=dict)

    @contextmanager
    def time_stage(self, stage: str) -> Iterator[None]:
        """Add the time that the block takes to that of `stage`."""
        key, started_at = (stage, threading.get_ident()), time.perf_counter()
        self.running.add(key)
        try:
            yield
        finally:
            self.stages[stage] += time.perf_counter() - started_at
            self.running.discard(key)

    def add(self, summary: Summary) -> None:
        """Count what another run did, too."""
        for name in (
            counter.name for counter in fields(self) if type(counter.default) in (int, float)
        ):
            setattr(self, name, getattr(self, name) + getattr(summary, name))
        self.rejected, self.stopped = (
            summary.rejected or self.rejected,
            summary.stopped or self.stopped,
        )
        for stage, seconds in summary.stages.items():
            self.stages[stage] = self.stages.get(stage, 0.0) + seconds

    def to_dict(self) -> dict[str, Any]:
        """The summary as the command line prints it."""
        counts = (
            "read",
            "documents",
            "passages",
            "spans",
            "failed",
            "skipped",
            "excluded",
            "duplicates",
            "others",
            "resumed",
            "tokens",
        )
        names = (*counts, "rejected", "stopped")
        stages = {name: round(value, 3) for name, value in self.stages.items()}
        return {
            **{name: getattr(self, name) for name in names},
            "seconds": round(self.seconds, 3),
            "stages": stages,
        }
