"""Trials of the fault campaign that do to their process what they are named after."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.faults.trial import Outcome, Trial


def open_families(_scene: Path, _folder: Path) -> Callable[[Trial], Outcome]:
    """Return what runs them; this module imports little, for each process that dies is replaced."""

    def run(trial: Trial) -> Outcome:
        if trial.fault == "dies":
            os.kill(os.getpid(), signal.SIGSEGV)
        if trial.fault == "sleeps":
            time.sleep(60)
        if trial.fault == "raises":
            raise KeyError("x")
        return Outcome(trial, is_mended=True)

    return run
