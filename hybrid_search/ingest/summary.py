"""The counts of a run, updated while it runs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

STAGES = ("read", "encode", "shape", "write")

SHOWN_REASONS = 10
"""Number of reasons shown to people; the rejects file has all."""


@dataclass(frozen=True, slots=True)
class Reason:
    """The number of documents refused for a reason, and the place of the first one."""

    count: int
    first_place: str

    def plus(self, count: int) -> Reason:
        """Return the reason with more documents."""
        return replace(self, count=self.count + count)


@dataclass(slots=True)
class Summary:
    """The counts of one run, updated by the pipeline stages while they work."""

    read: int = 0
    """Lines read, except lines of other shards and lines done according to a checkpoint."""
    documents: int = 0
    """Documents written."""
    passages: int = 0
    spans: int = 0
    """Covering windows written."""
    failed: int = 0
    """Documents refused: they are in the rejects file."""
    skipped: int = 0
    """Documents whose version in the index was left as it is: nearly all are unchanged."""
    unredacted: int = 0
    """Skipped documents without redactions, which do not replace redacted ones."""
    excluded: int = 0
    """Documents excluded by ``--where``."""
    deleted: int = 0
    """Documents removed, since they are gone from the index that is followed."""
    duplicates: int = 0
    """Documents that replaced a document of the same run."""
    replaced: int = 0
    """Documents of this run that were replaced by a different document with the same id."""
    others: int = 0
    """Lines of other shards."""
    resumed: int = 0
    """Lines done before this run, according to a checkpoint."""
    tokens: int = 0
    """Tokens encoded, without special tokens and padding."""
    bytes: int = 0
    """Bytes read."""
    seconds: float = 0.0
    rejected: str | None = None
    """The rejects file, if anything was refused."""
    reasons: dict[str, Reason] = field(default_factory=dict)
    """The reasons of refusals, in order of first occurrence."""
    languages: Counter[str] = field(default_factory=Counter)
    """Documents by the language that they say, or that was given or detected."""
    stopped: bool = False
    """True if the run was asked to stop early."""
    stages: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0), repr=False)
    """Seconds of work in each stage. Stages overlap: they may add up to more than `seconds`."""

    def __repr__(self) -> str:
        """Return the nonzero counts."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.repr}
        values["seconds"] = round(self.seconds, 3)
        shown = [f"{name}={value!r}" for name, value in values.items() if value]
        return f"Summary({', '.join(shown)})"

    @contextmanager
    def time_stage(self, stage: str) -> Iterator[None]:
        """Add the duration of the block to the time of `stage`."""
        started_at = time.perf_counter()
        try:
            yield
        finally:
            self.stages[stage] += time.perf_counter() - started_at

    def add(self, summary: Summary) -> None:
        """Add the counts of another run."""
        for name in (*COUNTS, "seconds"):
            setattr(self, name, getattr(self, name) + getattr(summary, name))
        self.rejected = summary.rejected or self.rejected
        self.stopped = summary.stopped or self.stopped
        self.languages.update(dict(summary.languages))
        for reason, refused in list(summary.reasons.items()):  # another thread may add one
            earlier = self.reasons.get(reason, Reason(0, refused.first_place))
            self.reasons[reason] = earlier.plus(refused.count)
        for stage, seconds in summary.stages.items():
            self.stages[stage] = self.stages.get(stage, 0.0) + seconds

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as the command line prints it."""
        return {
            **{name: getattr(self, name) for name in COUNTS if name != "bytes"},
            "rejected": self.rejected,
            "reasons": {reason: refused.count for reason, refused in self.reasons.items()},
            "languages": dict(self.languages),
            "stopped": self.stopped,
            "seconds": round(self.seconds, 3),
            "stages": {name: round(seconds, 3) for name, seconds in self.stages.items()},
        }


COUNTS = [counter.name for counter in fields(Summary) if type(counter.default) is int]
"""The names of the counts, in the order in which the command line prints them."""


class Tally:
    """A report that sums up the runs of a command, including one that fails half-way."""

    def __init__(self) -> None:
        self._finished_and_current = Summary(), Summary()
        self.has_begun = False
        """Whether any run has begun."""

    def __call__(self, summary: Summary) -> None:
        """Record a run, whose summary is still changing."""
        if summary is not self._finished_and_current[1]:
            # both at once: metrics are read in another thread
            self._finished_and_current = self.total(), summary
            self.has_begun = True

    def total(self) -> Summary:
        """Return the sum of the runs so far."""
        total = Summary()
        for summary in self._finished_and_current:
            total.add(summary)
        return total


def format_summary(summary: Summary) -> str:
    """Return the summary as one line for people."""
    rate = summary.documents / summary.seconds if summary.seconds else 0.0
    return (
        f"{summary.documents:,} documents ({rate:.0f}/s), {summary.passages:,} passages, "
        f"{summary.skipped:,} unchanged, {summary.failed:,} refused"
    )


def format_losses(summary: Summary) -> list[str]:
    """Return lines for people: each reason of refusals with its count, and replaced documents."""
    lines = [
        f"refused: {refused.count:,} x {reason} (first at {refused.first_place})"
        for reason, refused in list(summary.reasons.items())[:SHOWN_REASONS]
    ]
    if len(summary.reasons) > SHOWN_REASONS:
        lines.append(f"and {len(summary.reasons) - SHOWN_REASONS} more reasons")
    if summary.rejected:
        lines.append(f"refused documents, with reasons: {summary.rejected}")
    if summary.replaced:
        lines.append(
            f"{summary.replaced:,} documents have the id of another one before them and replaced "
            "it: give each its own id"
        )
    return lines
