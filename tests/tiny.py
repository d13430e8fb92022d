"""A tiny encoder, for indexes of a thousand passages in a second: every word has a fixed vector of its own, whatever stands around it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hybrid_search.backends.base import Backend, IndexSpec, Request
from hybrid_search.covering import DEFAULT_POLICY, bounds
from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.filters import Condition
from hybrid_search.ingest.documents import parse, source_hash
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.worker import ingest
from hybrid_search.passages import split
from hybrid_search.phrase import encode, vector
from hybrid_search.types import Encoding, Entry, Floats
from hybrid_search.words import words

DIMENSION = 8


class TinyEncoder:
    """One token a word."""

    info = EncoderInfo("tiny", "tiny-fingerprint", DIMENSION, "float32", "turn")

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        return [_encoded(text) for text in texts]


def _encoded(text: str) -> Encoding:
    offsets = words(text)
    vectors = [_vector(text[start:end]) for start, end in offsets.tolist()]
    return Encoding(np.array(vectors, dtype=np.float32).reshape(-1, DIMENSION), offsets)


def _vector(word: str) -> Floats:
    return np.random.default_rng(zlib.crc32(word.lower().encode())).standard_normal(DIMENSION).astype(np.float32)


def fill(backend: Backend, documents: Iterable[Mapping[str, Any]], rejects: Path = Path("rejected.jsonl"), index: str = "calls") -> Summary:
    """Ingest `documents` as the client does, with the tiny encoder."""
    lines = (Line("documents", number, json.dumps(each).encode()) for number, each in enumerate(documents, 1))
    return ingest(lines, backend, TinyEncoder(), index, rejects)


def request(phrase: str, window: int = 100, conditions: tuple[Condition, ...] = (), lexical: bool = True, semantic: bool = True) -> Request:
    return Request(phrase, vector(TinyEncoder(), phrase), window, conditions, lexical, semantic)


def bm25(backend: Backend, phrase: str, window: int = 10_000) -> dict[str, float]:
    """BM25 of the documents that `phrase` matches, best first; each document is one passage."""
    asked = Request(phrase, np.zeros(DIMENSION, np.float32), window, semantic=False)
    return {each.document_id: each.bm25 for each in backend.complete("calls", asked, list(backend.candidates("calls", asked).lexical))}


def entries(document: Mapping[str, Any], policy: str = DEFAULT_POLICY) -> list[Entry]:
    """The passages of one document, ready to be written."""
    read, canonical = parse(json.dumps(document).encode())
    cut = list(split(read))
    coded = encode(TinyEncoder(), read, cut)
    digest = source_hash(canonical, spec(policy))
    return [Entry(read, digest, len(cut), passage, tokens, len(bounds(tokens.counts, policy))) for passage, tokens in zip(cut, coded, strict=True)]


def spec(policy: str = DEFAULT_POLICY) -> IndexSpec:
    return IndexSpec.of(TinyEncoder.info, policy)
