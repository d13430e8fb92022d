"""How far BM25 of a server and of an embedded index agree: the ten best passages, and the scores.

The vectors of a span play no part in it, so every word gets the same one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.phrases import phrases
from benchmarks.quality.tasks import TASKS, rows, spread_evenly
from benchmarks.servers.entries import TASK, Corpus
from benchmarks.servers.latency import fill
from hybrid_search.backends.base import Backend
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.types import Request
from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.encoder.passage_codes import encode_passages
from hybrid_search.ingest import document_parser
from hybrid_search.ingest.sources import files
from hybrid_search.text import passages
from hybrid_search.text.languages import FIELD as LANGUAGE
from hybrid_search.text.types import Document, Encoding, Entry, Turn
from hybrid_search.text.words import words

DIMENSION = 8
TOP = 10
CLOSE = 0.02
"""Scores that differ by a smaller share of themselves are close."""

TURNS = 84
"""Customers' own words that are searched for, besides the phrases of the other measurements."""

WRITTEN_LANGUAGES = ("de", "es", "fr")
TOPICS = Path(__file__).parents[2] / "export/data/written/other_languages.jsonl"
QUERIES = 100
"""Texts that are searched for in each language: phrasings of topics and as many sentences."""

Scores = dict[tuple[str, int], float]


class EqualEncoder:
    """Gives every word the same vector."""

    info = EncoderInfo("equal", "equal", DIMENSION, "float32", "turn")

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Return the encoding of each text."""
        bounds = [words(text) for text in texts]
        return [Encoding(np.ones((len(pairs), DIMENSION), np.float32), pairs) for pairs in bounds]


def measure(backend: ServerBackend, data: Path, calls: int, index: str) -> dict[str, Any]:
    """Return how far the answers of the server and of an embedded index agree at alpha 0."""
    path = str(data / TASKS[TASK].documents)
    documents = [document_parser.parse(line.data)[0] for line in files.read([path])]
    turns = [document.turns[0].text for document in documents[calls :: len(documents) // TURNS]]
    return _compare_stores(backend, documents[:calls], [*phrases(data), *turns], index)


def measure_languages(backend: ServerBackend, data: Path, index: str) -> dict[str, Any]:
    """Return the same for sentences and turns in each of `WRITTEN_LANGUAGES`."""
    sentences = list(rows(data / "stsb_multi/sentences.jsonl.gz"))
    topics = list(rows(TOPICS))
    measured = {}
    for language in WRITTEN_LANGUAGES:
        own = [topic for topic in topics if topic["language"] == language]
        texts = [row[language] for row in sentences if row["split"] == "train"]
        texts += [turn["text"] for topic in own for turn in topic["says"] + topic["near"]]
        metadata = {LANGUAGE: language}
        documents = [
            Document(str(number), text, (Turn(text),), metadata)
            for number, text in enumerate(texts)
        ]
        names = [phrase for topic in own for phrase in topic["phrases"].values()]
        others = [row[language] for row in sentences if row["split"] == "dev"]
        queries = [*spread_evenly(names, QUERIES // 2), *spread_evenly(others, QUERIES // 2)]
        measured[language] = _compare_stores(backend, documents, queries, index)
    return measured


def _compare_stores(
    backend: ServerBackend, documents: Sequence[Document], texts: Sequence[str], index: str
) -> dict[str, Any]:
    """Return how far the answers to some texts agree in two indexes of the same documents."""
    encoder = EqualEncoder()
    corpus = Corpus(list(_entries(documents, encoder)), encoder)
    with TemporaryDirectory() as folder:
        embedded = EmbeddedBackend(Path(folder))
        for store in (embedded, backend):
            fill(store, corpus, index)
        server_scores = [_score(backend, index, text) for text in texts]
        embedded_scores = [_score(embedded, index, text) for text in texts]
        embedded.close()
    backend.drop_index(index)
    return {
        "passages": len(corpus.entries),
        "phrases": len(texts),
        **_compare(list(zip(embedded_scores, server_scores, strict=True))),
    }


def _entries(documents: Sequence[Document], encoder: EqualEncoder) -> Iterator[Entry]:
    for document in documents:
        pieces = list(passages.split(document))
        codes = encode_passages(encoder, document, pieces)
        for piece, tokens in zip(pieces, codes, strict=True):
            yield Entry(document, document.id, len(pieces), piece, tokens, 1)


def _score(backend: Backend, index: str, text: str) -> Scores:
    request = Request(text, np.zeros(DIMENSION, np.float32), 100, semantic=False)
    found = backend.find(index, request).passages
    return {(passage.document_id, passage.ordinal): passage.bm25 for passage in found}


def _compare(pairs: Sequence[tuple[Scores, Scores]]) -> dict[str, Any]:
    """Return the shares of the best passages, and of the scores, that both have in common."""
    matching = [pair for pair in pairs if any(pair)]
    unmatched = len(pairs) - len(matching)
    overlaps = [_overlap(*pair) for pair in matching]
    shares = [share for pair in matching for share in _differences(*pair)]
    close = fmean(share < CLOSE for share in shares)
    return {
        "phrases that match nothing on either": unmatched,
        f"of the {TOP} best in common": round(fmean(overlaps), 4),
        f"phrases with the same {TOP} best": overlaps.count(1.0),
        "scores within 2%": round(close, 4),
    }


def _differences(ours: Scores, theirs: Scores) -> list[float]:
    """Return the difference of both scores of each passage, as a share of the second."""
    ratios = [ours[place] / theirs[place] for place in ours.keys() & theirs.keys()]
    return [abs(ratio - 1) for ratio in ratios]


def _overlap(ours: Scores, theirs: Scores) -> float:
    our_best, their_best = (set(itertools.islice(scores, TOP)) for scores in (ours, theirs))
    return len(our_best & their_best) / max(len(our_best), len(their_best))
