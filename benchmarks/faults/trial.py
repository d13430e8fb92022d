"""What the campaign tries, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

SIGNAL = "signal"
TRACEBACK = "traceback"
HANG = "hang"
SILENT = "silent"
REMOVED = "removed"
LOST = "lost"

RULES = {
    SIGNAL: "the process ends by a signal",
    TRACEBACK: "an exception that is not one of the product's",
    HANG: "no end within the time limit",
    SILENT: "another answer than before, without a warning or an error",
    REMOVED: "a file that is not the product's is removed or changed",
    LOST: "what was committed cannot be read after the remedy that the message names",
}
"""What may never happen."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault; `family`, `target` and `fault` together say all that is needed to repeat it."""

    family: str
    target: str
    fault: str

    @property
    def id(self) -> str:
        """The name by which ``--only`` repeats it."""
        return f"{self.family}:{self.target}:{self.fault}"

    @classmethod
    def parse(cls, id: str) -> Trial:
        """Return the trial of an id.

        Raises:
            ValueError: If it is not ``FAMILY:TARGET:FAULT``.
        """
        family, _, rest = id.partition(":")
        target, colon, fault = rest.partition(":")
        if not colon:
            raise ValueError(f"{id!r} is not FAMILY:TARGET:FAULT")
        return cls(family, target, fault)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a trial.

    Attributes:
        trial: The fault.
        violations: The rules that were broken.
        is_reported: An error, a warning or a finding of ``verify`` told of the fault.
        is_mended: Afterwards everything was as before.
        skipped: Why it could not be tried here, "" if it was.
        note: The messages, or where it broke, in short.
        seconds: How long it took.
    """

    trial: Trial
    violations: tuple[str, ...] = ()
    is_reported: bool = False
    is_mended: bool = False
    skipped: str = ""
    note: str = ""
    seconds: float = 0.0


class Family(Protocol):
    """A kind of fault: lists its trials, and runs one of them in a process of the pool."""

    def list_trials(self, seed: int, full: bool) -> Sequence[Trial]:
        """Return the trials of a seed, thousands or, without `full`, a few of each kind."""
        ...

    def run(self, trial: Trial) -> Outcome:
        """Try one fault, and repair the scene for the next."""
        ...


def deal_rounds(count: int, *options: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield `count` combinations, so that each option comes about equally often.

    The first one changes fastest.
    """
    for number in range(count):
        combination = []
        for values in options:
            combination.append(values[number % len(values)])
            number //= len(values)
        yield tuple(combination)
