"""Passages ready to be written, from the benchmark's embedded index: encoded once, whatever the number of servers and of dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks import results
from benchmarks.quality.collection import ingested
from benchmarks.quality.tasks import TASKS
from hybrid_search import covering, encoder, passages, tokens
from hybrid_search.backends.base import IndexSpec
from hybrid_search.backends.embedded import schema
from hybrid_search.encoder.base import Encoder
from hybrid_search.ingest import documents, sources
from hybrid_search.types import Entry, TokenCodes

TASK = "calls_sgd"


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
    """The first `calls` of calls_sgd, with vectors of the usual size or of a smaller one of the model's. Raises SystemExit for a larger one."""
    ingested(TASKS[TASK], data).client.close()
    whole = encoder.load(device="cpu")
    usual, wanted = encoder.sized(whole), encoder.sized(whole, dimension)
    if wanted.info.dimension > usual.info.dimension:
        raise SystemExit(f"--dimensions {dimension}: the benchmark's index has vectors of {usual.info.dimension} numbers, which can only be cut")
    entries = _entries(data, calls, IndexSpec.of(usual.info, covering.DEFAULT_POLICY))
    return Corpus([replace(each, tokens=_cut(each.tokens, wanted.info.dimension)) for each in entries], wanted)


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


def _cut(coded: TokenCodes, dimension: int) -> TokenCodes:
    if coded.codes.shape[1] == dimension:
        return coded
    return tokens.pack(np.ascontiguousarray(tokens.vectors(coded)[:, :dimension]), coded.words, coded.counts)
