"""The McPhraSy embedder (section 3.2): a two-layer perceptron on frozen vectors, run by numpy.

`papers.mcphrasy.training` trains it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from benchmarks.quality.systems import normalize_rows
from hybrid_search.text.types import Floats, Halves


@dataclass(frozen=True, slots=True, eq=False)
class Embedder:
    """``relu(x first + first_bias) second + second_bias``, all float32.

    `first` is ``[mask + own, hidden]``, `second` ``[hidden, out]``. `base` names the models whose
    vectors it was trained on; `spanbert` and `phrasebert` are their folders of Hugging Face
    weights, "" for the product's own encoder.
    """

    base: str
    first: Floats
    first_bias: Floats
    second: Floats
    second_bias: Floats
    spanbert: str = ""
    phrasebert: str = ""

    def __call__(self, masks: Floats, own: Floats | None = None) -> Floats:
        """Return a vector for each context, float32 ``[contexts, out]``.

        From the masks' vectors ``[contexts, mask]`` and the phrase's own ``[own]``. Without `own`
        that part is zeros: a context alone, like the anchors in training.
        """
        hidden = np.maximum(
            inputs(masks, own, len(self.first) - masks.shape[1]) @ self.first + self.first_bias, 0
        )
        vectors: Floats = hidden @ self.second + self.second_bias
        return vectors

    def save(self, path: Path) -> None:
        """Write an .npz with an array for each field."""
        arrays: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        np.savez(path, **arrays)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read `path`; raises SystemExit if it is not the file of an embedder."""
        try:
            with np.load(path) as archive:
                values: dict[str, Any] = {field.name: archive[field.name] for field in fields(cls)}
                return cls(
                    **values
                    | {name: str(values[name]) for name in ("base", "spanbert", "phrasebert")}
                )
        except (OSError, ValueError, KeyError) as error:
            raise SystemExit(
                f"{path} is not an embedder ({error}): make one with"
                " python -m papers.mcphrasy.training"
            ) from error


def inputs(masks: Floats | Halves, own: Floats | None, width: int) -> Floats:
    """Return the perceptron's input, float32 ``[contexts, mask + width]``.

    Both parts are scaled to a length at which their numbers have a variance of about 1, since
    models differ in the length of their vectors. `own` is that of all contexts, ``[width]``, or
    that of each, ``[contexts, width]``.
    """
    own_rows = (
        np.zeros((len(masks), width), dtype=np.float32)
        if own is None
        else np.broadcast_to(own, (len(masks), width))
    )
    parts = [
        normalize_rows(part) * np.float32(np.sqrt(part.shape[1]))
        for part in (masks.astype(np.float32), own_rows.astype(np.float32))
    ]
    return np.concatenate(parts, axis=1)
