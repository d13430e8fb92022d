"""The model folder: ``model.onnx``, ``tokenizer.json``, ``encoder.json``.

All that crosses from ``export/`` into the product.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.errors import ModelError

SHIPPED = Path(__file__).parent.parent / "models" / "slice-minilm-l6"
SCHEMA = 1
CONTEXT = "turn"
"""What the encoder is shown around a span: its turn. Part of the fingerprint, because it changes
the vectors.
"""


class Artifact(BaseModel):
    """``encoder.json``.

    `sha256` maps each file of the folder to its digest; `fingerprint` leaves the precision out.
    `sizes` as in `EncoderInfo`.

    `precision` is that of the graph; in "stored" (`hybrid_search.encoder.precisions`) it can run in
    any.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    schema_version: Literal[1] = Field(alias="schema")
    name: str
    dimension: int = Field(gt=0)
    sizes: tuple[int, ...] = ()
    max_length: int = Field(gt=8)
    pooling: Literal["mean-without-special-tokens"]
    context: Literal["turn"]
    opset: int
    precision: Literal["float32", "float16", "int8", "stored"]
    fingerprint: str = Field(min_length=8)
    license: str
    origin: str
    sha256: Mapping[str, str]

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if not all(0 < size <= self.dimension for size in self.sizes):
            raise ValueError(
                f"sizes {list(self.sizes)} are not all between 1 and dimension {self.dimension}"
            )
        return self

    def info(self, precision: str) -> EncoderInfo:
        """What an index must know of it, where it runs in `precision`."""
        return EncoderInfo(
            self.name, self.fingerprint, self.dimension, precision, self.context, self.sizes
        )


def read(folder: Path) -> Artifact:
    """Read ``encoder.json`` and check every file that it names.

    Raises ModelError naming what is missing, what is damaged (both digests), or which setting is
    not understood.
    """
    path = folder / "encoder.json"
    if not path.is_file():
        raise ModelError(
            f"{folder} is not a model folder: encoder.json is missing. Make one with: python -m export.to_onnx --out {folder}"
        )
    try:
        artifact = Artifact.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ModelError(
            f"{path}: {location}: {first['msg']} (found {first['input']!r:.80}). Export the model again."
        ) from error
    for name in ("model.onnx", "tokenizer.json"):
        _check(folder / name, artifact.sha256.get(name))
    return artifact


def _check(path: Path, expected: str | None) -> None:
    if not path.is_file():
        raise ModelError(
            f"model folder {path.parent} is incomplete: {path.name} is missing. Copy it there, or export the model again."
        )
    actual = hashlib.sha256(path.read_bytes()).hexdigest()
    if actual != expected:
        expected_start = f"{expected:.12}" if expected else "nothing"
        raise ModelError(
            f"{path} is damaged: its SHA-256 starts with {actual:.12}, encoder.json says {expected_start}. Export the model again."
        )
