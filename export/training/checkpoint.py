"""A run's state on disk: enough to go on with the same steps and end with the same weights."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

FILE = "checkpoint.pt"


@dataclass(slots=True)
class State:
    """The progress of a run: the `stage`, its finished steps, and its best dev score.

    Also how many evaluations ago that score was. `digest` is that of recipe, base and data.
    `seconds` and `tokens` are those of all sittings together. `scores` are those of the finished
    stages.
    """

    digest: str
    stage: int = 0
    step: int = 0
    best: float | None = None
    since: int = 0
    seconds: float = 0.0
    tokens: int = 0
    sittings: int = 1
    curve: list[dict[str, Any]] = field(default_factory=list)


def save(folder: Path, state: State, tensors: dict[str, Any]) -> None:
    """Write state and tensors, replacing the last ones at once."""
    new = folder / f"{FILE}.new"
    names = {name: getattr(state, name) for name in State.__dataclass_fields__}
    torch.save({"state": names, "random": torch.get_rng_state(), **tensors}, new)
    os.replace(new, folder / FILE)  # noqa: PTH105


def load(folder: Path, digest: str) -> tuple[State, dict[str, Any]] | None:
    """Return state and tensors of the run in `folder`, or None if there is no checkpoint.

    Raises:
        SystemExit: If it is another run than that of `digest`.
    """
    if not (folder / FILE).is_file():
        return None
    saved = torch.load(folder / FILE, map_location="cpu", weights_only=True)
    state = State(**saved.pop("state"))
    if state.digest != digest:
        raise SystemExit(
            f"{folder} holds a run of another recipe, base or data: its digest is"
            f" {state.digest}, this run's {digest}. Give another --out, or remove that folder"
        )
    torch.set_rng_state(saved.pop("random"))
    return state, saved
