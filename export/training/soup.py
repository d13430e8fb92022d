"""A model soup: the weighted mean of some stages' weights (arXiv:2203.05482).

With the weights that a run began with it is that of arXiv:2109.01903.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from export.training.model import SpanEncoder
from export.training.recipe import START

STAGES = "stages"

START_NUMBER = -1
"""The number of the weights that a run begins with, among its stages."""


def number_stages(names: Sequence[str]) -> dict[str, int]:
    """Return the number of each stage by its name, and that of the start."""
    return {START: START_NUMBER, **{name: number for number, name in enumerate(names)}}


def folder_of(run: Path, stage: int) -> Path:
    """Return the folder in which the run `run` stores the weights of a stage, counted from 0."""
    return run / STAGES / str(stage + 1)


def mean(shares: Mapping[Path, float]) -> SpanEncoder:
    """Return the model whose every weight is the mean of those in the folders.

    Each folder counts by its share; shares sum to 1.
    """
    models = [SpanEncoder.load(folder) for folder in shares]
    with torch.no_grad():
        for parameters in zip(*(model.parameters() for model in models), strict=True):
            parameters[0].copy_(
                sum(
                    share * parameter
                    for share, parameter in zip(shares.values(), parameters, strict=True)
                )
            )
    return models[0]
