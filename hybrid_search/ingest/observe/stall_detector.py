"""Detection of a stalled ingest, from another thread than the run itself."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from hybrid_search.ingest.summary import Summary

STALLED_SECONDS = 900.0
"""A run that has work, but wrote no block for so long, is stalled. It is longer than the 600 s for
which a run waits for a server by default.
"""


@dataclass(slots=True)
class StallDetector:
    """A `Report` that keeps the summary of the run and the time of its last block.

    The summary is read while the run updates it; times are from `time.perf_counter`.
    """

    patience: float = STALLED_SECONDS
    summary: Summary = field(default_factory=Summary)
    last_block_at: float = field(default_factory=time.perf_counter)

    def __call__(self, summary: Summary) -> None:
        """Record that a block was written."""
        self.summary, self.last_block_at = summary, time.perf_counter()

    @property
    def lag(self) -> float:
        """Return the seconds since the last block was written, or since the start."""
        return time.perf_counter() - self.last_block_at

    @property
    def waiting_blocks(self) -> int:
        """Return the number of blocks that wait for a stage."""
        return sum(depth() for depth in list(self.summary.queues.values()))

    @property
    def working_stages(self) -> list[str]:
        """Return the stages that are working now, not those that wait, e.g. for standard input."""
        return sorted({stage for stage, _ in list(self.summary.running)})

    @property
    def stall_reason(self) -> str | None:
        """Return why the run is stalled; None if it makes progress or has nothing to do."""
        busy = self.working_stages
        if self.lag <= self.patience or not (busy or self.waiting_blocks):
            return None
        stages = f"{', '.join(busy) or 'no stage'} works"
        return f"no block was written for {self.lag:.0f} s, {self.waiting_blocks} wait and {stages}"
