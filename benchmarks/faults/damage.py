"""Bytes that change on the disk, in every file of an index and of a model folder."""

from __future__ import annotations

import operator
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.faults.examination import examine_model, examine_store
from benchmarks.faults.scene import Scene
from benchmarks.faults.trial import Outcome, Trial, deal_rounds

REGIONS = ("first", "middle", "last")
TIMES = ("kept", "touched")
"""Whether the file's time of change stays as it was, as on a failing disk, or not."""

KINDS = ("flip", "flips", "noise", "flips", "noise", "flip", "cut")
"""One bit, three bits, 0.2 % of the bytes at random, or the file cut off there."""

NOISE_SHARE = 0.002
APPENDED_BYTES = 64
"""What is appended to an empty file, in which nothing can be flipped."""

Chance = random.Random  # noqa: S311 (no secret)


@dataclass(frozen=True, slots=True)
class Target:
    """A file of the scene, and how often it is damaged; `source` is the folder that has it."""

    source: str
    name: str
    count: int
    short_count: int


TANTIVY_PARTS = ("store", "term", "idx", "fast", "fieldnorm", "pos")
"""How the names of tantivy's files end: contents, terms, where they stand, columns, lengths."""

TARGETS = (
    Target("tiny", "calls.index/head.json", 180, 6),
    Target("tiny", "calls.index/*/codes/*.codes", 700, 20),
    *(Target("tiny", f"calls.index/*/records/*.{part}", 200, 6) for part in TANTIVY_PARTS),
    Target("tiny", "calls.index/*/records/meta.json", 240, 8),
    Target("tiny", "calls.index/*/records/.managed.json", 60, 4),
    Target("tiny", "calls.index/*/fields.json", 60, 4),
    Target("tiny", "calls.index.lock", 60, 4),
    Target("interrupted", "calls.index/*/codes/*.codes", 120, 6),
    Target("interrupted", "calls.index/*/records/*.store", 120, 6),
    Target("interrupted", "calls.index/*/records/meta.json", 60, 4),
    Target("model", "encoder.json", 240, 0),
    Target("model", "calibration.json", 180, 0),
    Target("model", "boundaries.npz", 60, 0),
    Target("model", "tokenizer.json", 120, 0),
    Target("model", "int8.onnx", 90, 0),
    Target("model", "weights.data", 90, 0),
    Target("model", "README.md", 12, 0),
)


class Damage:
    """The family of damaged files."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self._scene, self._folder = scene, folder

    def list_trials(self, seed: int, full: bool) -> Sequence[Trial]:
        """Return the trials of all files that there are."""
        targets = [target for target in TARGETS if (self._scene.folder / target.source).is_dir()]
        return [
            trial
            for target in targets
            for trial in self._list_target(
                target, seed, target.count if full else target.short_count
            )
        ]

    def _list_target(self, target: Target, seed: int, count: int) -> Iterator[Trial]:
        path = find_file(self._scene.folder / target.source, target.name)
        chance = Chance(f"{seed} {target.source} {target.name}")
        for region, time, kind in deal_rounds(count, REGIONS, TIMES, KINDS):
            size = path.stat().st_size
            part = (REGIONS.index(region) * size // 3, (REGIONS.index(region) + 1) * size // 3)
            fault = draw_fault(chance, kind, *part) if size else draw_appendix(chance)
            yield Trial("damage", f"{target.source}/{target.name}", f"{fault}:{time}")

    def run(self, trial: Trial) -> Outcome:
        """Damage a copy of the file, and see what becomes of it."""
        source, _, name = trial.target.partition("/")
        fault, _, time = trial.fault.rpartition(":")
        pristine = find_file(self._scene.folder / source, name)
        if source == "model":
            return self._run_model(trial, pristine, fault, time)
        store = self._scene.copy_store(self._folder / "damage", source)
        path = store.path / pristine.relative_to(self._scene.folder / source)
        damage_file(path, fault, keep_time=time == "kept")

        def undo() -> None:
            shutil.rmtree(store.path)
            shutil.copytree(self._scene.folder / source, store.path)

        return examine_store(trial, store, undo)

    def _run_model(self, trial: Trial, pristine: Path, fault: str, time: str) -> Outcome:
        model = self._scene.copy_model(self._folder / "model")
        path = model.model / pristine.name
        damage_file(path, fault, keep_time=time == "kept")

        def undo() -> None:
            path.unlink(missing_ok=True)
            shutil.copy2(pristine, path)

        try:
            return examine_model(trial, model, undo)
        finally:
            undo()


def find_file(root: Path, name: str) -> Path:
    """Return the one file of a name, in which ``*`` stands for anything.

    Raises:
        FileNotFoundError: If there is none.
    """
    paths = sorted(path for path in root.glob(name) if path.is_file())
    if not paths:
        raise FileNotFoundError(f"{root} has no {name}")
    return paths[0]


def draw_appendix(chance: random.Random) -> str:
    """Return the text of the only fault that an empty file can have."""
    return f"append@{chance.randrange(2**16)}"


def draw_fault(chance: random.Random, kind: str, first: int, end: int) -> str:
    """Return the text of a fault of this kind from the byte `first` to before `end`."""
    if kind == "noise":
        return f"noise@{first}-{max(end, first + 1)}-{chance.randrange(2**16)}"
    if kind == "cut":
        return f"cut@{chance.randrange(first, max(end, first + 1))}"
    count = 3 if kind == "flips" else 1
    places = [
        f"{chance.randrange(first, max(end, first + 1))}.{chance.randrange(8)}"
        for _ in range(count)
    ]
    return f"{kind}@{'+'.join(places)}"


def damage_file(path: Path, fault: str, *, keep_time: bool) -> None:
    """Do to a file what `fault` says."""
    kind, _, details = fault.partition("@")
    status = path.stat()
    if kind == "cut":
        os.truncate(path, int(details))
    else:
        with path.open("rb+") as file:
            for offset, change in _CHANGES[kind](details, status.st_size):
                file.seek(offset)
                old = file.read(1) or b"\0"
                file.seek(offset)
                file.write(bytes((change(old[0]),)))
    if keep_time:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


Change = tuple[int, Callable[[int], int]]
"""An offset, and what becomes of the byte there."""


def _flip(details: str, size: int) -> Iterator[Change]:
    for place in details.split("+"):
        offset, _, bit = place.partition(".")
        yield min(int(offset), size - 1), partial(operator.xor, 1 << int(bit))


def _scatter(details: str, size: int) -> Iterator[Change]:
    first, end, seed = map(int, details.split("-"))
    chance, end = Chance(seed), min(end, size)
    for _ in range(max(1, int(NOISE_SHARE * (end - first)))):
        yield chance.randrange(first, end), partial(_replace_byte, chance.randrange(256))


def _append(details: str, size: int) -> Iterator[Change]:
    chance = Chance(int(details))
    for position in range(APPENDED_BYTES):
        yield size + position, partial(_replace_byte, chance.randrange(256))


def _replace_byte(new: int, _: int) -> int:
    return new


_CHANGES = {"flip": _flip, "flips": _flip, "noise": _scatter, "append": _append}
