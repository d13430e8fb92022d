"""The model: its folder, whether it encodes, and whether an index was made by it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from hybrid_search import encoder as encoders
from hybrid_search.backends import open_backend
from hybrid_search.backends.base import IndexInfo, IndexSpec, check_spec
from hybrid_search.config import Settings
from hybrid_search.doctor.check import Check, ok, problem, warning
from hybrid_search.encoder import artifact
from hybrid_search.errors import IndexMissingError

SENTENCE = "I would like what I paid last week to go back on my card, since the kettle leaks and nobody picks up the phone."
TIMED = 64
"""Sentences that are encoded to see how fast that is: a tenth of a second on two cores."""


def folder(asked: Settings) -> Iterator[Check]:
    """The files and their digests. Raises ModelError."""
    where = asked.model or encoders.SHIPPED
    found = artifact.read(where)
    yield ok("model", f"{found.name} in {where}: {len(found.sha256)} files as their SHA-256 says, {found.dimension} numbers a vector")


def encoder(asked: Settings) -> Iterator[Check]:
    """One sentence, and then many. Raises ModelError, DeviceError, MissingExtraError."""
    loaded = _loaded(asked)
    (one,) = loaded.encode([SENTENCE])
    if not len(one.offsets) or not np.isfinite(one.vectors).all() or not np.any(one.vectors, axis=1).all():
        yield problem("encoder", f"a sentence of {len(SENTENCE.split())} words gives no vectors that could be compared", "export the model again")
        return
    began = time.perf_counter()
    tokens = sum(len(each.offsets) for each in loaded.encode([SENTENCE] * TIMED))
    rate = tokens / (time.perf_counter() - began)
    provider = getattr(loaded, "provider", "this process")
    yield ok("encoder", f"a sentence is encoded, in {loaded.info.precision} on {provider}, about {rate:,.0f} tokens a second")


def index(asked: Settings, name: str) -> Iterator[Check]:
    """Whether it is there, and whether this model can ask it and write it."""
    backend = open_backend(asked.url, asked.access)
    try:
        held = backend.describe(name)
    except IndexMissingError as error:
        yield warning("index", str(error), f"python -m hybrid_search.ingest --index {name}")
        return
    finally:
        backend.close()
    yield compared(asked, name, held)


def compared(asked: Settings, name: str, held: IndexInfo) -> Check:
    """Whether an index is of this model. Raises ModelError where it is not."""
    whole, spec = _loaded(asked), held.spec
    fitting = encoders.sized(whole, spec.dimension) if spec.dimension in whole.info.sizes else whole
    check_spec(name, spec, IndexSpec.of(fitting.info, spec.policy))
    said = f"{held.documents:,} documents, {held.passages:,} passages, {held.spans:,} spans, by {spec.model} in {spec.precision}"
    return ok("index", f"{name!r}: {said}")


def _loaded(asked: Settings) -> encoders.Encoder:
    return encoders.load(asked.model or encoders.SHIPPED, asked.device, asked.precision)
