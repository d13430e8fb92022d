"""What a run did, counted while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

STAGES = ("read", "encode", "shape", "write")


@dataclass(slots=True)
class Summary:
    """`failed` documents were refused and are in the rejects file; `skipped` ones were unchanged; `excluded` ones are not what ``--where`` asks for;
    `duplicates` replaced one of this run.

    `resumed` lines were done before, by a checkpoint, and not read again; `stopped` says that the run was asked to end before its sources did.

    `stages` are seconds of work in each stage; stages overlap, so they may add up to more than `seconds`.
    """

    read: int = 0
    documents: int = 0
    passages: int = 0
    spans: int = 0
    failed: int = 0
    skipped: int = 0
    excluded: int = 0
    duplicates: int = 0
    resumed: int = 0
    tokens: int = 0
    bytes: int = 0
    seconds: float = 0.0
    rejected: str | None = None
    stopped: bool = False
    stages: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time that the block takes to that of `stage`."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.stages[stage] += time.perf_counter() - began

    def add(self, other: Summary) -> None:
        """Count what another run did, too."""
        for name in (each.name for each in fields(self) if each.name not in ("rejected", "stages")):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.rejected = other.rejected or self.rejected
        for stage, seconds in other.stages.items():
            self.stages[stage] = self.stages.get(stage, 0.0) + seconds

    def to_dict(self) -> dict[str, Any]:
        """The summary as the command line prints it."""
        names = ("read", "documents", "passages", "spans", "failed", "skipped", "excluded", "duplicates", "resumed", "tokens", "rejected", "stopped")
        stages = {name: round(value, 3) for name, value in self.stages.items()}
        return {**{name: getattr(self, name) for name in names}, "seconds": round(self.seconds, 3), "stages": stages}
