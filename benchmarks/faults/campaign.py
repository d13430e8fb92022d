"""The campaign from its first trial to its summary."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import results
from benchmarks.faults import pool, report, scene
from benchmarks.faults.families import FAMILIES, open_families
from benchmarks.faults.scene import Scene
from benchmarks.faults.trial import Outcome, Trial

SEED = 19
WORKERS = 2
RESULT = "campaign"


def choose_memory() -> str | None:
    """Return a folder in memory, where copies cost little; None if the system has none."""
    memory = Path("/dev/shm")  # noqa: S108 (a folder with a random name is made in it)
    return str(memory) if os.access(memory, os.W_OK) else None


def prepare(folder: Path, with_model: bool) -> Path:
    """Return the scene, made in a process of its own."""
    folder.chmod(0o711)  # for the trials in which this is another user
    path = folder / "scene"
    process = multiprocessing.get_context("spawn").Process(
        target=scene.build, args=(path, with_model)
    )
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"the scene could not be made: status {process.exitcode}")
    return path


def list_trials(path: Path, seed: int, full: bool, names: Sequence[str]) -> list[Trial]:
    """Return all trials of these families."""
    return [
        trial
        for name in names
        for trial in FAMILIES[name](Scene(path), path.parent).list_trials(seed, full)
    ]


def run(options: argparse.Namespace, folder: Path) -> int:
    """Run what the options of the command say; return its exit status."""
    started_at = time.monotonic()
    if options.only:
        trials = [Trial.parse(options.only)]
        path = prepare(folder, with_model=True)
    else:
        path = prepare(folder, with_model=not options.short)
        trials = list_trials(path, options.seed, not options.short, options.family or [*FAMILIES])
    if options.limit:
        chance = random.Random(options.seed)  # noqa: S311 (no secret)
        trials = chance.sample(trials, min(options.limit, len(trials)))
    outcomes: list[Outcome] = []
    for outcome in pool.run_trials(trials, open_families, path, options.workers):
        outcomes.append(outcome)
        if options.log:
            with options.log.open("a") as log:
                print(json.dumps(asdict(outcome)), file=log)
        if sys.stderr.isatty():
            print(f"\r{len(outcomes):,} of {len(trials):,}", end="", file=sys.stderr)
    summary = report.summarize(outcomes, options.seed, time.monotonic() - started_at)
    if options.save:
        results.write(RESULT, summary, results.FAULTS)
    print(json.dumps(summary) if options.json else report.render(summary))
    if options.only:
        print(outcomes[0].note)
    return 1 if any(outcome.violations for outcome in outcomes) else 0
