"""Processes that run trials, and are replaced when one of them dies of it or does not end."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from benchmarks.faults.trial import HANG, SIGNAL, TRACEBACK, Outcome, Trial

SECONDS = 40.0
"""How long a trial may take; most take a tenth of a second, on a machine that is not busy."""

GRACE = 1.5
"""A process ends itself after `SECONDS`, with a note of where it was, and is killed if it does not:
after so many times that.
"""

START_SECONDS = 60.0
"""How long a new process may take until it runs its first trial."""

MEMORY = 6 * 2**30
"""Bytes of address space of a process: a damaged file may ask for all that the machine has."""

Open = Callable[[Path, Path], Callable[[Trial], Outcome]]
"""Returns what runs trials, given the folder of the scene and one of this process's own."""

CONTEXT = multiprocessing.get_context("spawn")  # a fork would share threads' locks


def run_trials(
    trials: Sequence[Trial], open_families: Open, scene: Path, workers: int
) -> Iterator[Outcome]:
    """Yield the outcome of each trial, in the order in which they end."""
    waiting = list(reversed(trials))
    slots = [_Slot(open_families, scene, number) for number in range(workers)]
    try:
        while waiting or any(slot.trial for slot in slots):
            for slot in slots:
                if waiting and slot.trial is None:
                    slot.start(waiting.pop())
            wait([slot.connection for slot in slots if slot.trial], timeout=0.5)
            yield from filter(None, [slot.take_outcome() for slot in slots])
    finally:
        for slot in slots:
            slot.stop()


class _Slot:
    """One process and what it is doing."""

    def __init__(self, open_families: Open, scene: Path, number: int) -> None:
        self._arguments = (open_families, scene, scene.parent / f"process-{number}")
        self._process: BaseProcess | None = None
        self._started_at = self._deadline = 0.0
        self.connection: Connection
        self.trial: Trial | None = None

    def start(self, trial: Trial) -> None:
        """Hand a trial to the process, a new one if the last has died."""
        self._started_at, allowed = time.monotonic(), GRACE * SECONDS
        if self._process is None:
            self.connection, theirs = CONTEXT.Pipe()
            self._process = CONTEXT.Process(
                target=_work, args=(theirs, *self._arguments), daemon=True
            )
            self._process.start()
            theirs.close()
            allowed += START_SECONDS
        self.trial, self._deadline = trial, self._started_at + allowed
        self.connection.send(trial)

    def take_outcome(self) -> Outcome | None:
        """Return the outcome of the trial if it has ended, by itself or by force."""
        trial = self.trial
        if trial is None:
            return None
        try:
            if self.connection.poll():
                outcome: Outcome = self.connection.recv()
                self.trial = None
                return outcome
        except (EOFError, ConnectionError):
            return self._bury(trial)
        if time.monotonic() > self._deadline:
            return Outcome(trial, (HANG,), note=self.stop(), seconds=SECONDS)
        return None

    def _bury(self, trial: Trial) -> Outcome:
        process = self._process
        if process is not None:
            process.join(5)
        status = (process and process.exitcode) or 0
        place = self.stop()
        if status < 0:
            return Outcome(trial, (SIGNAL,), note=f"{signal.Signals(-status).name} {place}")
        if time.monotonic() - self._started_at >= SECONDS:
            return Outcome(trial, (HANG,), note=place, seconds=SECONDS)
        return Outcome(trial, (TRACEBACK,), note=f"the process ended with status {status} {place}")

    def stop(self) -> str:
        """End the process, and return where it was if it has left a note."""
        process, self._process, self.trial = self._process, None, None
        if process is None:
            return ""
        process.kill()
        process.join()
        self.connection.close()
        with suppress(OSError):
            return _shorten_dump(_dump_path(self._arguments[2]).read_text(errors="replace"))
        return ""


def _dump_path(folder: Path) -> Path:
    return folder.with_suffix(".stderr")


def _shorten_dump(dump: str) -> str:
    """Return the innermost lines of the product in the dump of a dying process."""
    lines = [line.strip() for line in dump.splitlines() if "/hybrid_search/" in line]
    places = [line.rpartition("/")[2] for line in lines[:3]]
    return f"({'; '.join(places)})" if places else ""


def _work(connection: Connection, open_families: Open, scene: Path, folder: Path) -> None:
    """Run trials until the parent closes the connection."""
    with _dump_path(folder).open("w") as dump:
        os.dup2(dump.fileno(), 2)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        faulthandler.enable(dump)
        run = open_families(scene, folder)
        with suppress(EOFError, KeyboardInterrupt):
            while True:
                trial: Trial = connection.recv()
                started_at = time.monotonic()
                faulthandler.dump_traceback_later(SECONDS, exit=True, file=dump)
                try:
                    outcome = run(trial)
                except Exception as error:  # a fault of the campaign itself must not pass for none
                    traceback.print_exc(file=dump)
                    outcome = Outcome(trial, (TRACEBACK,), note=f"in the campaign: {error!r}")
                faulthandler.cancel_dump_traceback_later()
                connection.send(replace(outcome, seconds=time.monotonic() - started_at))
        sys.stderr.flush()
