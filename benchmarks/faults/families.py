"""All families of faults, and how a process of the pool opens them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from benchmarks.faults.access import Access
from benchmarks.faults.answers import Answers
from benchmarks.faults.damage import Damage
from benchmarks.faults.parameters import Parameters
from benchmarks.faults.scene import Scene
from benchmarks.faults.trial import Family, Outcome, Trial

FAMILIES: dict[str, Callable[[Scene, Path], Family]] = {
    "damage": Damage,
    "access": Access,
    "answers": Answers,
    "parameters": Parameters,
}
"""For each name what makes the family, given the scene and a folder of its own."""


def open_families(scene: Path, folder: Path) -> Callable[[Trial], Outcome]:
    """Return what runs trials of any family in this process, whose folder is made anew."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    families: dict[str, Family] = {}

    def run(trial: Trial) -> Outcome:
        if trial.family not in families:
            families[trial.family] = FAMILIES[trial.family](Scene(scene), folder)
        return families[trial.family].run(trial)

    return run
