"""Check the model: its folder, whether it encodes, and whether an index was made by it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np

from hybrid_search import encoder as encoders
from hybrid_search.backends import open_backend
from hybrid_search.backends.types import IndexSpec, check_spec
from hybrid_search.config import Settings
from hybrid_search.encoder import model_folder
from hybrid_search.encoder.installed_models import find_name
from hybrid_search.errors import IndexMissingError, ModelError
from hybrid_search.maintenance.doctor.check import Check, ok, problem, warning

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
    if faults:
        yield warning("models", "; ".join(faults), "leave it, if you do not need this model")
    else:
        yield ok("models", f"installed: {names}")


def encoder(settings: Settings) -> Iterator[Check]:
    """Check that the model can be loaded and encodes a sentence, and measure how fast it is."""
    loaded = _load_encoder(settings)
    vectors = loaded.encode([SENTENCE])[0].vectors
    if not (len(vectors) and np.isfinite(vectors).all() and vectors.any(axis=1).all()):
        finding = f"a sentence of {len(SENTENCE.split())} words gives no vectors, or zeros or NaN"
        remedy = "export the model again, or use the shipped one: leave out --model"
        yield problem("encoder", finding, remedy)
        return
    started_at = time.perf_counter()
    tokens = sum(len(encoding.offsets) for encoding in loaded.encode([SENTENCE] * TIMED))
    rate = tokens / (time.perf_counter() - started_at)
    provider = loaded.info.provider or "this process"
    finding = f"encodes in {loaded.info.precision} on {provider}"
    yield ok("encoder", f"{finding}, about {rate:,.0f} tokens a second")


def index(settings: Settings, name: str) -> Iterator[Check]:
    """Check that the index exists and that queries find its model; else ModelError is raised."""
    try:
        with closing(open_backend(settings.url, settings.access)) as backend:
            info = backend.describe_index(name)
    except IndexMissingError as error:
        remedy = f"ingest documents, or run hybrid-search setup --index {name}, to make it"
        yield warning("index", str(error), remedy)
        return
    spec = info.spec
    if settings.model is None:  # then an index is searched with its own, if that is installed
        own_name = find_name(spec.fingerprint, spec.dimension)
        settings = replace(settings, model=own_name)
    encoder = _load_encoder(settings)
    if spec.dimension in encoder.info.sizes:
        encoder = encoders.truncate_encoder(encoder, spec.dimension)
    check_spec(name, spec, IndexSpec.from_encoder(encoder.info, spec.policy, spec.codes))
    counts = f"{info.documents:,} documents, {info.passages:,} passages, {info.spans:,} spans"
    yield ok("index", f"{name!r}: {counts}, written by {spec.model} in {spec.precision}")


def _load_encoder(settings: Settings) -> encoders.Encoder:
    return encoders.load(encoders.find_model(settings.model), settings.device, settings.precision)
