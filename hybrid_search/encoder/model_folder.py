"""Reading and checking of model folders: graphs, weights, ``tokenizer.json``, ``encoder.json``.

The folder is the only thing that ``export/`` hands to the product. Its graphs, such as
``int8.onnx``, share their weights, in ``weights.data``. A calibrated model also has
``calibration.json``, read by `hybrid_search.search.calibration`, and a model that predicts clause
boundaries has ``boundaries.npz``, read by `hybrid_search.encoder.prior_file`. ``codebook.npz`` has
the centroids that codes of words refer to, read by `hybrid_search.encoder.codebook_file`.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hybrid_search.encoder.precisions import RUNNABLE, UNSIGNED
from hybrid_search.errors import ModelError, put_plainly
from hybrid_search.system import file_digest

SHIPPED = Path(__file__).parent.parent / "models" / "slice-bge-small"
SCHEMA = 2
SETTINGS = "encoder.json"
TOKENIZER = "tokenizer.json"
CALIBRATION = "calibration.json"
BOUNDARIES = "boundaries.npz"
CODEBOOK = "codebook.npz"
CONFIG = "config.json"
"""The configuration of the encoder for transformers, needed only to continue training."""
EXPORT_AGAIN = "export the model again"
COPY_AGAIN = "copy it again from where the model came from"
CONTEXT = "turn"
"""The context of a span that the encoder reads: its turn. It is part of the fingerprint."""

T = TypeVar("T")


class Artifact(BaseModel):
    """The content of ``encoder.json``.

    `sha256` maps each file of the folder to its digest. Calibration, boundaries and codebook have
    digests too, but do not affect the `fingerprint`, and neither does the precision. `sizes` and
    `languages` are as in `EncoderInfo`.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    schema_version: Literal[2] = Field(alias="schema")
    name: str
    dimension: int = Field(gt=0)
    sizes: tuple[int, ...] = ()
    languages: tuple[str, ...] = ()
    max_length: int = Field(gt=8)
    pooling: Literal["mean-without-special-tokens"]
    context: Literal["turn"]
    opset: int
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
        if not self.precisions:
            raise ValueError(
                f"sha256 names none of {', '.join(f'{name}.onnx' for name in RUNNABLE)}"
            )
        return self

    @property
    def precisions(self) -> list[str]:
        """The precisions for which the folder has a graph."""
        return [name for name in RUNNABLE if f"{name}.onnx" in self.sha256]

    @property
    def graphs(self) -> list[str]:
        """The names of the files of all graphs."""
        unsigned = [UNSIGNED] if "int8" in self.precisions else []
        return [f"{name}.onnx" for name in self.precisions] + unsigned


def read(folder: Path) -> Artifact:
    """Return the content of ``encoder.json``, after a check of every file that it names.

    Raises ModelError for a missing file, or a damaged one (naming both digests).
    """
    artifact = read_settings(folder)
    for name in dict.fromkeys((*artifact.graphs, TOKENIZER, *artifact.sha256)):
        is_fitted = name in (CALIBRATION, BOUNDARIES, CODEBOOK)
        remedy = COPY_AGAIN if is_fitted else EXPORT_AGAIN
        _check(folder / name, artifact.sha256.get(name), remedy)
    return artifact


def read_settings(folder: Path) -> Artifact:
    """Return the content of ``encoder.json`` without checking other files.

    Raises:
        ModelError: If the file is missing or cannot be read, or a setting is unknown.
    """
    path = folder / SETTINGS
    with _translate_errors(path):
        is_present = path.is_file()
    if not is_present:
        raise ModelError(
            f"{folder} is not a model folder: encoder.json is missing. "
            "Name a folder with an exported model, or name none to use the shipped one"
        )
    try:
        return Artifact.model_validate_json(read_file(path))
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(str(part) for part in first["loc"]) or "the file"
        fault = f"{put_plainly(first['msg'])} (found {first['input']!r:.80})"
        raise ModelError(f"{path}: {location} {fault}. Export the model again.") from error


def read_arrays(
    folder: Path, name: str, build: Callable[[Mapping[str, NDArray[Any]]], T | None]
) -> T | None:
    """Return what `build` makes of the arrays in an ``.npz`` file, None if the model has none.

    A file that ``encoder.json`` does not list is ignored, as it may belong to a previous model. Its
    digest is checked with the model's.

    Raises:
        ModelError: If it cannot be read, lacks an array, or `build` raises ValueError.
    """
    path = folder / name
    if not os.path.lexists(path):  # lexists: a dangling link must raise
        return None
    if name not in read_settings(folder).sha256:
        return None
    try:
        with np.load(io.BytesIO(read_file(path)), allow_pickle=False) as arrays:
            return build(arrays)
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        why = error if type(error) is ValueError else repr(error)
        raise ModelError(f"{path} cannot be used ({why}): {COPY_AGAIN}") from error


def read_file(path: Path) -> bytes:
    """Return the content of a file in a model folder.

    Raises:
        ModelError: If it cannot be read.
    """
    with _translate_errors(path):
        if path.is_fifo():  # reading it would block until there is a writer
            raise ModelError(f"{path} cannot be read (it is a pipe): put the model's file there")
        return path.read_bytes()


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ModelError(
            f"{path} cannot be read ({error.strerror}): let this user read the model folder, "
            f"or {COPY_AGAIN}"
        ) from error


def _check(path: Path, expected: str | None, remedy: str) -> None:
    with _translate_errors(path):
        actual = file_digest(path) if path.is_file() else None
    if actual is None:
        raise ModelError(
            f"model folder {path.parent} is incomplete: {path.name} is missing. "
            f"Copy it there, or {remedy}."
        )
    if actual != expected:
        expected_start = f"{expected:.12}" if expected else "nothing"
        raise ModelError(
            f"{path} is damaged: its SHA-256 starts with {actual:.12}, "
            f"encoder.json says {expected_start}. {remedy.capitalize()}."
        )
