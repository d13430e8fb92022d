"""The progress of a run: a line on standard error, ``curve.jsonl``, and ``curve.svg``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from export.training.checkpoint import State

FILE = "curve.jsonl"
STEPS_PER_LINE = 20
"""Steps whose mean losses make a line of the curve."""

SPEED = {"tokens", "seconds"}

SECONDS = 10.0
"""Between two lines of progress; on a terminal one line is overwritten every second."""


def say(line: str) -> None:
    """Print a line for people."""
    print(line, file=sys.stderr, flush=True)


class Progress:
    """Shows the mean losses of the last steps, with speed and time left."""

    def __init__(self, name: str, steps: int, first: int) -> None:
        self._name, self._steps, self._first = name, steps, first
        self._step_values: list[Mapping[str, float]] = []
        self._terminal = sys.stderr.isatty()
        self._started_at = self._shown_at = time.monotonic()

    def __call__(self, values: Mapping[str, float], step: int) -> None:
        """Count a step."""
        self._step_values.append(values)
        now = time.monotonic()
        if now - self._shown_at < (1.0 if self._terminal else SECONDS) and step < self._steps:
            return
        seconds_left = (self._steps - step) * (now - self._started_at) / max(1, step - self._first)
        print(
            f"{self._line(step)}, {_clock(seconds_left)} left",
            file=sys.stderr,
            end="\r" if self._terminal and step < self._steps else "\n",
            flush=True,
        )
        self._step_values, self._shown_at = [], now

    def _line(self, step: int) -> str:
        means = _means(self._step_values)
        speed = sum(values["tokens"] for values in self._step_values) / sum(
            values["seconds"] for values in self._step_values
        )
        losses_text = ", ".join(
            f"{key} {value:.4f}" for key, value in means.items() if key not in SPEED and key != "lr"
        )
        rates = f"lr {means['lr']:.1e}, {speed:,.0f} tokens/s"
        return f"{self._name} {step}/{self._steps}: {losses_text}, {rates}"


class Recorder:
    """Adds the mean losses of every `STEPS_PER_LINE` steps to the curve."""

    def __init__(self, folder: Path, state: State) -> None:
        self._folder, self._state = folder, state
        self._step_values: list[Mapping[str, float]] = []

    def __call__(self, values: Mapping[str, float]) -> None:
        """Count a step."""
        self._step_values.append(values)
        if self._state.step % STEPS_PER_LINE == 0:
            note(
                self._folder,
                self._state,
                {
                    "losses": {
                        key: round(value, 5)
                        for key, value in _means(self._step_values).items()
                        if key not in SPEED
                    }
                },
            )
            self._step_values = []


def _means(step_values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each key over the steps that have it."""
    keys = dict.fromkeys(key for step in step_values for key in step)
    return {
        key: sum(values) / len(values)
        for key in keys
        if (values := [step[key] for step in step_values if key in step])
    }


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02d}:{int(seconds) % 60:02d}"


def note(folder: Path, state: State, values: Mapping[str, Any]) -> None:
    """Add a line to the curve, and to the curve of the checkpoint."""
    line = {
        "stage": state.stage + 1,
        "step": state.step,
        "seconds": round(state.seconds, 1),
        **values,
    }
    state.curve.append(line)
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def note_scores(folder: Path, state: State, scores: Mapping[str, float], is_best: bool) -> None:
    """Print dev scores and add them to the curve.

    `kept` marks those of weights that were the stage's best.
    """
    say(
        f"step {state.step}: dev "
        + ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
    )
    note(folder, state, {"dev": scores, "kept": is_best})


def rewind(folder: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Cut the file to the lines of the checkpoint; later lines will be written again."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
