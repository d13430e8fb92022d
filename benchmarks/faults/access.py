"""Files that vanish, are links or forbidden; read-only and full file systems; closed outputs."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.faults import system
from benchmarks.faults.alterations import ALTERATIONS, make_foreign_folder
from benchmarks.faults.commands import CommandReport
from benchmarks.faults.examination import (
    Judge,
    examine_deletion,
    examine_model,
    examine_store,
    find_changes,
    snapshot_strangers,
)
from benchmarks.faults.scene import Scene, Store
from benchmarks.faults.trial import REMOVED, Outcome, Trial

STORE_FILES = (
    "store",
    "store/calls.index",
    "store/calls.index/head.json",
    "store/calls.index/*/codes",
    "store/calls.index/*/codes/*.codes",
    "store/calls.index/*/records",
    "store/calls.index/*/records/meta.json",
    "store/calls.index/*/records/*.store",
    "store/calls.index/*/fields.json",
    "store/calls.index.lock",
    "rejected.jsonl",
)
MODEL_FILES = (
    "model",
    "model/int8.onnx",
    "model/int8-unsigned.onnx",
    "model/weights.data",
    "model/tokenizer.json",
    "model/encoder.json",
    "model/calibration.json",
    "model/boundaries.npz",
)
FORBIDDING = ("unreadable", "read-only")
FREE_KILOBYTES = (0, 4, 8, 16, 32, 64, 96, 128, 160, 200, 300, 400)
OUTPUTS = {"full": "/dev/full", "closed": ""}
COMMANDS = ("query", "verify", "ingest", "delete")
BAD_LINES = b'{"id": "bad"}\n' * 200


class Access:
    """The family of files that cannot be reached as they should."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self._scene, self._folder = scene, folder / "access"
        self._has_loaded = False

    def list_trials(self, seed: int, full: bool) -> Sequence[Trial]:
        """Return every alteration of every file, every full disk, and every closed output."""
        trials = [
            Trial("access", target, f"{kind}:{action}")
            for target in STORE_FILES
            for kind in ALTERATIONS
            for action in ("use", "delete")
            if (target, kind) != ("rejected.jsonl", "pipe")  # a pipe waits for its reader
        ]
        if self._has_model:
            trials += [
                Trial("access", target, f"{kind}:use")
                for target in MODEL_FILES
                for kind in ALTERATIONS
            ]
        trials += [
            Trial("access", "file system", f"read-only:{name}") for name in ("use", "delete")
        ]
        trials += [
            Trial("access", "file system", f"full:{place}-{free}")
            for place in ("store", "rejected")
            for free in FREE_KILOBYTES
        ]
        trials += [
            Trial("access", f"{stream} of {command}", kind)
            for stream in ("stdout", "stderr")
            for command in COMMANDS
            for kind in OUTPUTS
        ]
        count = len(trials) if full else 10
        return random.Random(seed).sample(trials, count)  # noqa: S311 (no secret)

    @property
    def _has_model(self) -> bool:
        return (self._scene.folder / "model").is_dir()

    def run(self, trial: Trial) -> Outcome:
        """Try one fault in a fresh copy."""
        kind, _, action = trial.fault.partition(":")
        if trial.target.startswith("std"):
            return self._run_output(trial)
        if trial.target in MODEL_FILES:
            return self._run_model(trial, kind)
        if trial.target == "file system":
            return self._run_file_system(trial, kind, action)
        if kind in FORBIDDING and not self._has_loaded:
            self._load_modules()
        store = self._scene.copy_store(self._folder)
        foreign = make_foreign_folder(store.folder)
        if trial.target == "rejected.jsonl":
            _add_bad_lines(store)

        def undo() -> None:
            with system.become_root_again():
                self._restore(store)

        with _identity(store.folder, kind):
            path = next(store.folder.glob(trial.target), store.folder / trial.target)
            ALTERATIONS[kind](path, foreign)
            try:
                examine = examine_store if action == "use" else examine_deletion
                return examine(trial, store, undo)
            finally:
                with system.become_root_again():
                    shutil.rmtree(self._folder, ignore_errors=True)

    def _load_modules(self) -> None:
        """Import what commands need: nobody may be unable to read the user's libraries."""
        store = self._scene.copy_store(self._folder)
        store.ingest()
        store.query()
        shutil.rmtree(self._folder)
        self._has_loaded = True

    def _restore(self, store: Store) -> None:
        """Put back everything as it was before, but for the folder of somebody else."""
        for path in store.folder.iterdir():
            if path.name != "elsewhere":
                _remove(path)
        shutil.rmtree(store.folder / "elsewhere" / "store", ignore_errors=True)
        shutil.copytree(self._scene.folder / "tiny", store.path)
        shutil.copy2(self._scene.folder / "all.jsonl", store.documents)
        system.give_to_nobody(store.folder)

    def _run_model(self, trial: Trial, kind: str) -> Outcome:
        folder = self._folder / "model copy"
        shutil.rmtree(folder, ignore_errors=True)
        model = self._scene.copy_model(folder)
        foreign = make_foreign_folder(folder)

        def undo() -> None:
            with system.become_root_again():
                for name in ("model", "real"):
                    _remove(folder / name)
                self._scene.copy_model(folder)
                system.give_to_nobody(folder)

        with _identity(folder, kind):
            ALTERATIONS[kind](folder / trial.target, foreign)
            return examine_model(trial, model, undo)

    def _run_file_system(self, trial: Trial, kind: str, action: str) -> Outcome:
        store = self._scene.copy_store(self._folder)
        mounted = store.folder / "mounted"
        if kind == "read-only":
            place, size = "store", 9000
        else:
            place, _, free = action.partition("-")
            size = int(free) + (system.measure_kilobytes(store.path) if place == "store" else 4)
        if not system.mount_memory(mounted, size):
            return Outcome(trial, skipped="this process may not mount a file system")
        try:
            if place == "store":
                shutil.copytree(store.path, mounted / "store")
                store = replace(store, name="mounted/store")
            else:
                store = replace(store, rejects=mounted / "rejected.jsonl")
                _add_bad_lines(store)
            if kind == "read-only":
                system.remount(mounted, "ro")
            examine = examine_deletion if action == "delete" else examine_store
            return examine(trial, store, lambda: system.remount(mounted, "rw,size=20m"))
        finally:
            system.unmount(mounted)

    def _run_output(self, trial: Trial) -> Outcome:
        stream, _, command = trial.target.partition(" of ")
        store = self._scene.copy_store(self._folder)
        strangers = snapshot_strangers(store.folder)
        judge = Judge(trial)
        judge.hear(_run_with_output(store, command, stream, OUTPUTS[trial.fault]))
        if changes := find_changes(strangers):
            judge.violate(REMOVED, ", ".join(changes))
        judge.hear(store.ingest())
        return judge.conclude(judge.compare(store.query(), store.after))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _add_bad_lines(store: Store) -> None:
    with store.documents.open("ab") as file:
        file.write(BAD_LINES)


@contextmanager
def _identity(folder: Path, kind: str) -> Iterator[None]:
    """Be nobody if something is forbidden, for root may do anything."""
    if kind not in FORBIDDING:
        yield
        return
    with system.become_nobody(folder):
        yield


def _run_with_output(store: Store, command: str, stream: str, file: str) -> CommandReport:
    """Run a command in a process of its own whose output goes nowhere."""
    arguments = {
        "query": ["query", "refund request", "--json"],
        "verify": ["verify"],
        "ingest": ["ingest", str(store.documents)],
        "delete": ["delete", "--yes"],
    }[command]
    places = ["--url", f"embedded:{store.path}", "--index", "calls"]
    program = "from benchmarks.faults.commands import main; main()"
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(file or os.devnull, "w") as full:  # noqa: PTH123 (a device)
        target = full.fileno() if file else write_end
        pipe = subprocess.PIPE
        process = subprocess.run(
            [sys.executable, "-c", program, arguments[0], *places, *arguments[1:]],
            stdout=target if stream == "stdout" else pipe,
            stderr=target if stream == "stderr" else pipe,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    os.close(write_end)
    output, errors = process.stdout or "", process.stderr or ""
    text = errors + output
    crash = text[-500:] if "Traceback" in text or process.returncode < 0 else ""
    return CommandReport(tuple(arguments), process.returncode, output, errors, crash)
