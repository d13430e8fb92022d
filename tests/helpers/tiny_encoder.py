"""A tiny encoder that indexes a thousand passages in a second.

Every word has a fixed vector, whatever its context. The functions make entries, requests and filled
indexes with it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import IndexSpec, Request
from hybrid_search.config import DEFAULT_POLICY
from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.encoder.passage_codes import encode_passages
from hybrid_search.errors import IndexMissingError
from hybrid_search.ingest.document_parser import parse, source_hash
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.pipeline import ingest
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine
from hybrid_search.search.phrase_vector import query_vector
from hybrid_search.text.boundaries import BoundaryModel
from hybrid_search.text.filters import Condition
from hybrid_search.text.passages import split
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Encoding, Entry, Floats
from hybrid_search.text.window_policy import window_bounds
from hybrid_search.text.words import words

DIMENSION = 8
FINEST = 8
"""Bits of a number with which codes of eight numbers are nearly the vectors."""


class TinyEncoder:
    """Gives each word one token, a random vector seeded by the word."""

    info = EncoderInfo("tiny", "tiny-fingerprint", DIMENSION, "float32", "turn")

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        return [_encode_text(text) for text in texts]


def _encode_text(text: str) -> Encoding:
    offsets = words(text)
    vectors = [_word_vector(text[start:end]) for start, end in offsets.tolist()]
    return Encoding(np.array(vectors, dtype=np.float32).reshape(-1, DIMENSION), offsets)


@lru_cache(maxsize=100_000)
def _word_vector(word: str) -> Floats:
    generator = np.random.default_rng(zlib.crc32(word.lower().encode()))
    return generator.standard_normal(DIMENSION).astype(np.float32)


def fill_index(
    backend: Backend,
    documents: Iterable[Mapping[str, Any]],
    rejects: Path = Path("rejected.jsonl"),
    index: str = "calls",
    codes: int | None = None,
) -> Summary:
    """Ingest `documents` as the client does, with the tiny encoder."""
    if codes is None and index in backend.list_indexes():
        with suppress(IndexMissingError):  # its creation was interrupted
            codes = backend.read_head(index)[0].codes
    lines = (
        SourceLine("documents", number, json.dumps(document).encode())
        for number, document in enumerate(documents, 1)
    )
    return ingest(lines, backend, TinyEncoder(), IngestOptions(index, rejects, codes=codes))


def make_request(
    phrase: str,
    window: int = 100,
    conditions: tuple[Condition, ...] = (),
    lexical: bool = True,
    semantic: bool = True,
) -> Request:
    return Request(
        phrase, query_vector(TinyEncoder(), phrase), window, conditions, lexical, semantic
    )


def bm25_scores(backend: Backend, phrase: str, window: int = 10_000) -> dict[str, float]:
    """Return BM25 of the documents that `phrase` matches, best first; one passage per document."""
    bm25_request = Request(phrase, np.zeros(DIMENSION, np.float32), window, semantic=False)
    found = backend.find("calls", bm25_request).passages
    return {passage.document_id: passage.bm25 for passage in found}


def make_entries(document: Mapping[str, Any], policy: str = DEFAULT_POLICY) -> list[Entry]:
    """Return the entries of one document, ready to be written."""
    parsed, canonical = parse(json.dumps(document).encode())
    passages = list(split(parsed))
    word_codes = encode_passages(TinyEncoder(), parsed, passages)
    digest = source_hash(canonical, make_spec(policy))
    return [
        Entry(
            parsed,
            digest,
            len(passages),
            passage,
            passage_codes,
            len(window_bounds(passage_codes.counts, policy)),
        )
        for passage, passage_codes in zip(passages, word_codes, strict=True)
    ]


def make_spec(policy: str = DEFAULT_POLICY) -> IndexSpec:
    return IndexSpec.from_encoder(TinyEncoder.info, policy)


def make_prior() -> SpanPrior:
    """A prior for vectors of 8 numbers that sees no boundary but at punctuation and at ends."""
    zeros = np.zeros((16, 1), np.float32)
    return SpanPrior(BoundaryModel(zeros, zeros[0], zeros[0], -9.0), 0.1, 0.02, 0.05)
