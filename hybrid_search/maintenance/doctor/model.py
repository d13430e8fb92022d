"""Check the model: its folder, whether it encodes, and whether an index was made by it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from hybrid_search import encoder as encoders
from hybrid_search.backends import open_backend
from hybrid_search.backends.types import IndexInfo, IndexSpec, check_spec
from hybrid_search.config import Settings
from hybrid_search.encoder import model_folder
from hybrid_search.encoder.prior_file import load as load_prior
from hybrid_search.encoder.truncated import default_dimension
from hybrid_search.errors import IndexMissingError, ModelError
from hybrid_search.maintenance.doctor.check import Check, ok, problem, warning
from hybrid_search.search.calibration import load as load_calibration

SENTENCE = (
    "I would like what I paid last week to go back on my card, "
    "since the kettle leaks and nobody picks up the phone."
)
TIMED = 64
"""Sentences that are encoded to measure the rate: a tenth of a second on two cores."""


def folder(settings: Settings) -> Iterator[Check]:
    """Check the files of the model folder and their digests; a damaged one raises ModelError."""
    path = encoders.find_model(settings.model)
    model_artifact = model_folder.read(path)
    origins = [model.distribution for model in encoders.list_models() if model.folder == path]
    origin = f"from distribution {origins[0]}" if origins else "from a folder"
    yield ok(
        "model",
        f"{model_artifact.name}, {origin}, in {path}: {len(model_artifact.sha256)} files match "
        f"their SHA-256, {model_artifact.dimension} dimensions",
    )


def installed_models() -> Iterator[Check]:
    """List the models that can be chosen by name, and check that they can be found."""
    models = encoders.list_models()
    names = ", ".join(f"{model.name} (from {model.distribution})" for model in models)
    faults = []
    for name in dict.fromkeys(model.name for model in models):
        try:
            encoders.find_model(name)
        except ModelError as error:
            faults.append(str(error))
    yield (
        warning("models", "; ".join(faults), "leave it, if you do not need this model")
        if faults
        else ok("models", f"installed: {names}")
    )


def calibration(settings: Settings) -> Iterator[Check]:
    """Check that the calibration can be used, and that a change of it would be seen."""
    path = encoders.find_model(settings.model)
    artifact, name = model_folder.read_settings(path), model_folder.CALIBRATION
    if not (path / name).is_file():
        yield warning(
            "calibration",
            f"{path} has no {name}: scores are mapped by parameters that were not fitted to this "
            "model",
            "copy the file from where the model came from, or calibrate the model",
        )
        return
    maps = load_calibration(path, artifact.precisions[0])
    if name not in artifact.sha256:
        yield warning(
            "calibration",
            f"encoder.json in {path} has no SHA-256 of {name}: a change of it would go unseen",
            "calibrate the model again, which records the digest",
        )
        return
    parameters = ", ".join(f"{name} {value:g}" for name, value in maps.to_dict().items())
    yield ok("calibration", f"scores are mapped by {parameters}")


def span_prior(settings: Settings) -> Iterator[Check]:
    """Check that the prior of spans can be used."""
    path = encoders.find_model(settings.model)
    artifact, name = model_folder.read_settings(path), model_folder.BOUNDARIES
    prior = load_prior(path, default_dimension(artifact))
    if prior is None:
        missing = "encoder.json names no" if (path / name).is_file() else "there is no"
        yield warning(
            "span prior",
            f"{missing} {name} in {path}: the words that are shown are chosen by cosine alone",
            "copy the model again from where it came from, if it has such a file there",
        )
    else:
        weights = f"ends {prior.ends:.3f}, inside {prior.inside:.3f}, length {prior.length:.3f}"
        yield ok("span prior", f"the words that are shown are chosen by cosine and {weights}")


def encoder(settings: Settings) -> Iterator[Check]:
    """Check that the model can be loaded and encodes a sentence, and measure how fast it is."""
    loaded = _load_encoder(settings)
    (sentence_encoding,) = loaded.encode([SENTENCE])
    if (
        not len(sentence_encoding.offsets)
        or not np.isfinite(sentence_encoding.vectors).all()
        or not np.any(sentence_encoding.vectors, axis=1).all()
    ):
        yield problem(
            "encoder",
            f"a sentence of {len(SENTENCE.split())} words gives no vectors, or zeros or NaN",
            "export the model again, or use the shipped one: leave out --model",
        )
        return
    started_at = time.perf_counter()
    tokens = sum(len(encoding.offsets) for encoding in loaded.encode([SENTENCE] * TIMED))
    rate = tokens / (time.perf_counter() - started_at)
    provider = loaded.info.provider or "this process"
    yield ok(
        "encoder",
        f"encodes in {loaded.info.precision} on {provider}, about {rate:,.0f} tokens a second",
    )


def index(settings: Settings, name: str) -> Iterator[Check]:
    """Check that the index exists, and that this model can search and write it."""
    backend = open_backend(settings.url, settings.access)
    try:
        info = backend.describe_index(name)
    except IndexMissingError as error:
        yield warning("index", str(error), "ingest documents into it first, or name another index")
        return
    finally:
        backend.close()
    yield check_index_model(settings, name, info)


def check_index_model(settings: Settings, name: str, info: IndexInfo) -> Check:
    """Return the counts of an index that this model made; another model's raises ModelError."""
    full_encoder, spec = _load_encoder(settings), info.spec
    index_encoder = (
        encoders.truncate_encoder(full_encoder, spec.dimension)
        if spec.dimension in full_encoder.info.sizes
        else full_encoder
    )
    check_spec(name, spec, IndexSpec.from_encoder(index_encoder.info, spec.policy, spec.codes))
    counts = f"{info.documents:,} documents, {info.passages:,} passages, {info.spans:,} spans"
    return ok("index", f"{name!r}: {counts}, written by {spec.model} in {spec.precision}")


def _load_encoder(settings: Settings) -> encoders.Encoder:
    return encoders.load(encoders.find_model(settings.model), settings.device, settings.precision)
