"""Whether a run still gets on, seen from outside: it is asked by another thread, and the run knows
nothing of it but that it reports.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from hybrid_search.ingest.summary import Summary

STALLED_SECONDS = 900.0
"""A run that has work and wrote no block for so long does not get on. A server that is away is
waited for 600 s, if nothing else is said.
"""


@dataclass(slots=True)
class StallDetector:
    """A `Report`: the run's summary, which is read while the run counts in it, and when its last
    block was written (`time.perf_counter`).
    """

    patience: float = STALLED_SECONDS
    summary: Summary = field(default_factory=Summary)
    last_block_at: float = field(default_factory=time.perf_counter)

    def __call__(self, summary: Summary) -> None:
        """A block was written."""
        self.summary, self.last_block_at = summary, time.perf_counter()

    @property
    def lag(self) -> float:
        """Seconds since the last block was written, or since the start."""
        return time.perf_counter() - self.last_block_at

    @property
    def waiting_blocks(self) -> int:
        """Blocks that wait for a stage."""
        return sum(depth() for depth in list(self.summary.queues.values()))

    @property
    def working_stages(self) -> list[str]:
        """The stages that work now. One that waits, as for standard input, does not."""
        return sorted({stage for stage, _ in list(self.summary.running)})

    @property
    def stall_reason(self) -> str | None:
        """Why this run does not get on; None where it does, or has nothing to do."""
        busy = self.working_stages
        if self.lag <= self.patience or not (busy or self.waiting_blocks):
            return None
        return f"no block was written for {self.lag:.0f} s, {self.waiting_blocks} wait and {', '.join(busy) or 'no stage'} works"
