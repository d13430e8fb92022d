"""Passages ready to be written, from the benchmark's embedded index: encoded once, whatever the number of servers and of dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks import results
from benchmarks.quality.collection import ingested
from benchmarks.quality.tasks import TASKS
from hybrid_search import covering, encoder, passages, tokens
from hybrid_search.backends.base import IndexSpec
from hybrid_search.backends.embedded import schema
from hybrid_search.encoder.base import Encoder, EncoderInfo
from hybrid_search.ingest import documents, sources
from hybrid_search.types import Encoding, Entry, Floats, TokenCodes

TASK = "calls_sgd"
SAMPLED = 200
"""Every so many passages, one whose tokens the projection is fitted on."""


@dataclass(frozen=True, slots=True, eq=False)
class Projected:
    """An encoder whose vectors go through a linear map, float32 ``[dimension, fewer]``, as a trained head would: it commutes with the mean."""

    inner: Encoder
    matrix: Floats

    @property
    def info(self) -> EncoderInfo:
        """Of the projected vectors."""
        held = self.inner.info
        return replace(held, fingerprint=f"{held.fingerprint}-{self.matrix.shape[1]}", dimension=self.matrix.shape[1])

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """As the inner encoder does, projected."""
        return [Encoding(each.vectors @ self.matrix, each.offsets) for each in self.inner.encode(texts)]


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Calls with the codes of their passages, and the encoder that they are of."""

    entries: list[Entry]
    encoder: Encoder

    @property
    def spec(self) -> IndexSpec:
        """What an index of these passages is made for."""
        return IndexSpec.of(self.encoder.info, covering.DEFAULT_POLICY)

    @property
    def words(self) -> int:
        """In all passages together."""
        return sum(len(each.tokens.words) for each in self.entries)


def corpus(data: Path, calls: int, dimension: int | None = None) -> Corpus:
    """The first `calls` of calls_sgd; `dimension` of them projected by the principal directions of the tokens, for timing only."""
    ingested(TASKS[TASK], data).client.close()
    base = encoder.load(device="cpu")
    entries = list(_entries(data, calls, IndexSpec.of(base.info, covering.DEFAULT_POLICY)))
    if dimension is None:
        return Corpus(entries, base)
    matrix = _principal([each.tokens for each in entries[::SAMPLED]], dimension)
    return Corpus([replace(each, tokens=_projected(each.tokens, matrix)) for each in entries], Projected(base, matrix))


def _entries(data: Path, calls: int, spec: IndexSpec) -> Iterator[Entry]:
    connection = schema.connect(results.STORE / f"{TASK}.sqlite")
    one = "SELECT ordinal, data FROM passages JOIN documents USING (document) JOIN tokens USING (passage) WHERE id = ?"
    for line in itertools.islice(sources.read([str(data / TASKS[TASK].documents)]), calls):
        document, canonical = documents.parse(line.data)
        held = {ordinal: tokens.from_bytes(coded) for ordinal, coded in connection.execute(one, (document.id,))}
        cut = list(passages.split(document))
        digest = documents.source_hash(canonical, spec)
        for passage in cut:
            coded = held[passage.ordinal]
            yield Entry(document, digest, len(cut), passage, coded, len(covering.bounds(coded.counts, spec.policy)))
    connection.close()


def _principal(sample: Sequence[TokenCodes], dimension: int) -> Floats:
    stacked = np.concatenate([tokens.vectors(each) for each in sample])
    _, directions = np.linalg.eigh(stacked.T @ stacked)
    kept: Floats = np.ascontiguousarray(directions[:, ::-1][:, :dimension], dtype=np.float32)
    return kept


def _projected(coded: TokenCodes, matrix: Floats) -> TokenCodes:
    return tokens.pack(tokens.vectors(coded) @ matrix, coded.words, coded.counts)
