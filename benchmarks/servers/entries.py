"""Passages ready to be written, taken from the benchmark's embedded index.

They are encoded once, whatever the number of servers and of dimensions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks import results
from benchmarks.quality.tasks import TASKS
from hybrid_search import connect, encoder
from hybrid_search.backends import open_backend
from hybrid_search.backends.types import IndexSpec, Request
from hybrid_search.config import DEFAULT_POLICY
from hybrid_search.encoder.base import Encoder, codebook
from hybrid_search.ingest import document_parser
from hybrid_search.ingest.sources import files
from hybrid_search.ingest.types import SourceLine
from hybrid_search.text import passages, window_policy, word_codes
from hybrid_search.text.types import Codebook, Entry, PassageTokens, WordCodes

TASK = "calls_sgd"


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """Calls with the word codes of their passages, and the encoder that made them."""

    entries: list[Entry]
    encoder: Encoder

    @property
    def spec(self) -> IndexSpec:
        """The spec of an index of these passages."""
        return IndexSpec.from_encoder(self.encoder.info, DEFAULT_POLICY)

    @property
    def words(self) -> int:
        """Words of all passages together."""
        return sum(len(entry.tokens.words) for entry in self.entries)


def corpus(data: Path, calls: int, dimension: int | None = None) -> Corpus:
    """Return the first `calls` of calls_sgd, with vectors of the usual size or a smaller one.

    Raises:
        SystemExit: For a larger size.
    """
    path = str(data / TASKS[TASK].documents)
    with connect(f"embedded:{results.STORE}") as client:  # what is there is not encoded again
        client.ingest_lines(
            itertools.islice(files.read([path]), calls),
            index=TASK,
            rejects=results.STORE / f"{TASK}.rejected.jsonl",
        )
    full_encoder = encoder.load(device="cpu")
    default_encoder, target_encoder = (
        encoder.truncate_encoder(full_encoder),
        encoder.truncate_encoder(full_encoder, dimension),
    )
    if target_encoder.info.dimension > default_encoder.info.dimension:
        raise SystemExit(
            f"--dimensions {dimension}: the benchmark's index has vectors of"
            f" {default_encoder.info.dimension} numbers, which can only be truncated"
        )
    spec = IndexSpec.from_encoder(default_encoder.info, DEFAULT_POLICY)
    entries = read_entries(itertools.islice(files.read([path]), calls), TASK, spec)
    return Corpus(
        [
            replace(entry, tokens=_truncate_codes(entry.tokens, codebook(target_encoder)))
            for entry in entries
        ],
        target_encoder,
    )


def read_entries(
    source_lines: Iterable[SourceLine], index: str, spec: IndexSpec
) -> Iterator[Entry]:
    """Yield the passages of documents, with their word codes in an embedded `index`."""
    backend = open_backend(f"embedded:{results.STORE}")
    nothing = Request("", np.zeros(spec.dimension, np.float32), 1)
    for line in source_lines:
        document, canonical = document_parser.parse(line.data)
        keys = backend.list_passages(index, document.id)
        codes_by_ordinal = {
            stored.ordinal: stored.tokens for stored in backend.read_passages(index, nothing, keys)
        }
        document_passages = list(passages.split(document))
        digest = document_parser.source_hash(canonical, spec)
        for passage in document_passages:
            coded = codes_by_ordinal[passage.ordinal]
            yield Entry(
                document,
                digest,
                len(document_passages),
                passage,
                coded,
                len(window_policy.window_bounds(coded.counts, spec.policy)),
            )
    backend.close()


def _truncate_codes(coded: WordCodes, used: Codebook) -> WordCodes:
    if coded.dimension == used.dimension:
        return coded
    vectors = np.ascontiguousarray(word_codes.vectors(coded)[:, : used.dimension])
    words = np.column_stack([coded.words, coded.rows, coded.rows + 1]).astype(np.int32)
    return word_codes.pack(PassageTokens(vectors, words, coded.counts), used, coded.bits)
