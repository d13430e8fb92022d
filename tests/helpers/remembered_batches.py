"""Run each full batch of the encoder once, and read its output from a file after that.

A sample of calls takes the encoder six seconds. Tests that encode all of it, and are not about the
encoder, need not do it again; tokens, batches and their order are those of the encoder itself.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from hybrid_search.encoder.onnx import OnnxEncoder
from hybrid_search.text.types import Floats

FEW_TOKENS = 256
"""A batch of fewer tokens is run: it takes no longer than to read its file."""


@contextmanager
def remember_batches(folder: Path) -> Iterator[None]:
    """Keep the outputs of batches in `folder`, which several processes may use at once."""
    folder.mkdir(exist_ok=True)
    run = OnnxEncoder._run

    def run_once(encoder: OnnxEncoder, rows: Sequence[Sequence[int]]) -> Floats:
        if sum(map(len, rows)) < FEW_TOKENS:
            return run(encoder, rows)
        batch = repr((encoder.info.fingerprint, encoder.precision, [list(row) for row in rows]))
        path = folder / f"{hashlib.sha256(batch.encode()).hexdigest()}.npy"
        if path.exists():
            remembered: Floats = np.load(path)
            return remembered
        hidden = run(encoder, rows)
        part = path.with_suffix(f".{os.getpid()}-{id(hidden)}")
        with part.open("wb") as file:
            np.save(file, hidden)
        part.replace(path)
        return hidden

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OnnxEncoder, "_run", run_once)
        yield
