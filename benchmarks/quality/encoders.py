"""The model under measurement: a folder by ``python -m export.to_onnx``, or the shipped one."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path

from benchmarks import results
from hybrid_search import encoder
from hybrid_search.encoder import SHIPPED, Encoder, prior_file
from hybrid_search.encoder.model_folder import CALIBRATION
from hybrid_search.encoder.precisions import PRECISIONS
from hybrid_search.errors import HybridSearchError
from hybrid_search.search import calibration
from hybrid_search.search.calibration import COSINE, SCORE, Calibration
from hybrid_search.text.span_prior import SpanPrior


@dataclass(frozen=True, slots=True)
class Model:
    """A model folder, with the precision and dimension to use.

    Results and indexes of any model but the shipped one have the model in their names, so that they
    never replace each other.
    """

    folder: Path = SHIPPED
    precision: str = "auto"
    dimension: int | None = None

    @property
    def encoder(self) -> Encoder:
        """The encoder, loaded once a process; its vectors have `dimension` numbers."""
        return encoder.truncate_encoder(load_full_encoder(self), self.dimension)

    @property
    def calibration(self) -> Calibration | None:
        """The calibration for its precision and dimension; None if the folder has none."""
        if not (self.folder / CALIBRATION).is_file():
            return None
        info, spans_by = self.encoder.info, SCORE if self.prior else COSINE
        return calibration.load(self.folder, info.precision, info.dimension, spans_by)

    @property
    def prior(self) -> SpanPrior | None:
        """The prior of spans for its dimension, if the folder has one."""
        return prior_file.load(self.folder, self.encoder.info.dimension)

    @property
    def label(self) -> str:
        """Name, precision, head of the fingerprint and any chosen dimension, as a file name."""
        info = self.encoder.info
        size = f"_{self.dimension}" if self.dimension else ""
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", info.name)
        return f"{name}_{info.precision}_{info.fingerprint[:8]}{size}"

    def suffix(self, calls: int | None = None) -> str:
        """Return what the model adds to the names of its results and of its indexes' folder.

        Empty for the shipped model and all calls.
        """
        return ("" if self == Model() else f"_{self.label}") + (f"_{calls}calls" if calls else "")

    def store(self, calls: int | None = None) -> Path:
        """Return the folder of its indexes."""
        suffix = self.suffix(calls)
        return results.STORE / suffix.removeprefix("_") if suffix else results.STORE


def load_full_encoder(model: Model) -> Encoder:
    """Return the encoder of `model` with whole vectors."""
    return encoder.load(model.folder, "auto", model.precision)


def add_options(parser: ArgumentParser) -> None:
    """Add ``--model``, ``--precision``, ``--dimension`` and ``--data``."""
    parser.add_argument(
        "--model",
        help="a folder made by python -m export.to_onnx, or an installed model's name; default: the"
        " shipped one",
    )
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="auto",
        help="what it computes in; default: what suits the device",
    )
    parser.add_argument(
        "--dimension",
        type=int,
        help="numbers a vector, one of the model's sizes; default: its usual one",
    )
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of data sets")


def load_model(options: Namespace) -> Model:
    """Return the model of the options; raises SystemExit with one line if it cannot be loaded."""
    try:
        folder = encoder.find_model(options.model)
        model = Model(folder, options.precision, options.dimension)
        model.encoder  # noqa: B018
    except HybridSearchError as error:
        raise SystemExit(str(error)) from error
    return model
