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
from hybrid_search.errors import IndexMissingError, ModelError
from hybrid_search.maintenance.doctor.check import Check, ok, problem, warning

SENTENCE = (
    "I would like what I paid last week to go back on my card, "
    "since the kettle leaks and nobody picks up the phone."
)
FITTED = (model_folder.CALIBRATION, model_folder.BOUNDARIES)
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


def fitted_parts(settings: Settings) -> Iterator[Check]:
    """Check that the model has the parts that are fitted to it, and vouches for them."""
    path = encoders.find_model(settings.model)
    digests = model_folder.read_settings(path).sha256
    missing = [name for name in FITTED if name not in digests]
    if missing:
        yield warning(
            "fitted parts",
            f"encoder.json in {path} has no SHA-256 of {' and '.join(missing)}: scores are mapped "
            "by parameters that may not be the model's, and the words that are shown may be chosen "
            "by cosine alone",
            "copy the model again from where it came from, if it has these files there",
        )
    else:
        yield ok("fitted parts", f"{' and '.join(FITTED)} are those of the model")


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
