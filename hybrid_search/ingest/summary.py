"""What a run did, counted while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

STAGES = ("read", "encode", "shape", "write")


@dataclass(slots=True)
class Summary:
    """`failed` documents were refused and are in the rejects file; `skipped` ones were unchanged; `duplicates` replaced one of this run;
    `others` are lines that other shards take, and are not among those `read`.

    `stages` are seconds of work in each stage; stages overlap, so they may add up to more than `seconds`.
    """

    read: int = 0
    documents: int = 0
    passages: int = 0
    spans: int = 0
    failed: int = 0
    skipped: int = 0
    duplicates: int = 0
    others: int = 0
    tokens: int = 0
    bytes: int = 0
    seconds: float = 0.0
    rejected: str | None = None
    stages: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time that the block takes to that of `stage`."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.stages[stage] += time.perf_counter() - began

    def to_dict(self) -> dict[str, Any]:
        """The summary as the command line prints it."""
        names = ("read", "documents", "passages", "spans", "failed", "skipped", "duplicates", "others", "tokens", "rejected")
        stages = {name: round(value, 3) for name, value in self.stages.items()}
        return {**{name: getattr(self, name) for name in names}, "seconds": round(self.seconds, 3), "stages": stages}
