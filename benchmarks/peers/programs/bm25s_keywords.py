"""bm25s: keywords alone, with stop words and a stemmer as in its README."""

from __future__ import annotations

from typing import Any

import bm25s
import numpy as np
import Stemmer

from benchmarks.peers.types import Answer, Target, Texts


def build(texts: Texts, target: Target) -> Any:
    """Index the passages, and save the index."""
    stemmer = Stemmer.Stemmer("english")
    contents = [passage.text for passage in texts.passages]
    tokens = bm25s.tokenize(contents, stopwords="en", stemmer=stemmer, show_progress=False)
    retriever = bm25s.BM25()
    retriever.index(tokens, show_progress=False)
    retriever.save(target.folder, corpus=contents)
    ids = [passage.id for passage in texts.passages]
    documents = np.array([passage.document for passage in texts.passages])
    return retriever, stemmer, ids, documents


def search(index: Any, phrase: str, k: int, document: str | None) -> list[Answer]:
    """Return the best passages in which a word of the phrase stands."""
    retriever, stemmer, ids, documents = index
    tokens = bm25s.tokenize(phrase, stopwords="en", stemmer=stemmer, show_progress=False)
    mask = (documents == document).astype(np.float32) if document else None
    size = min(k, len(ids))
    rows, scores = retriever.retrieve(tokens, k=size, weight_mask=mask, show_progress=False)
    return [Answer(ids[row]) for row, score in zip(rows[0], scores[0], strict=True) if score > 0]
