"""A sample of documents, encoded with the time taken."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from hybrid_search import passages, phrase, tokens
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import InputError, UsageError
from hybrid_search.ingest import documents
from hybrid_search.ingest.sources import Line
from hybrid_search.types import Document, Passage, TokenCodes

DOCUMENTS = 1000
SECONDS = 15.0
"""A sample ends with so many documents, or when the encoder has had so many seconds."""

Cut = tuple[Document, Passage]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Documents and their passages, with the token codes of each; `seconds` are the encoder's, `skipped` lines were no documents."""

    documents: int
    skipped: int
    cut: Sequence[Cut]
    codes: Sequence[TokenCodes]
    seconds: float

    @property
    def words(self) -> int:
        """Words, those that two passages share counted once."""
        return sum(int((each.counts > 0).sum()) for each in self.codes)

    @property
    def tokens(self) -> int:
        """Tokens of all passages."""
        return sum(len(each.codes) for each in self.codes)

    @property
    def code_bytes(self) -> int:
        """Bytes of the token codes as they are stored."""
        return sum(len(tokens.to_bytes(each)) for each in self.codes)


def take(encoder: Encoder, lines: Iterable[Line], most: int = DOCUMENTS, seconds: float = SECONDS) -> Sample:
    """The first documents of `lines`, encoded as an ingest does. Raises UsageError where there is none with a word."""
    encoder.encode(["once, so that nothing is timed that is done only once"])
    skipped: list[Line] = []
    cut, codes, took, count = list[Cut](), list[TokenCodes](), 0.0, 0
    read = islice(_documents(lines, skipped), most)
    while took < seconds and (some := _enough(read)):
        count += len({id(document) for document, _ in some})
        for start in range(0, len(some), phrase.ENCODE_PASSAGES):
            coded, spent = _timed(encoder, some[start : start + phrase.ENCODE_PASSAGES])
            codes += coded
            took += spent
        cut += some
    if not any(len(each.codes) for each in codes):
        raise UsageError(f"no document with a word to plan by: {count} documents were read, and {len(skipped)} lines that are none")
    return Sample(count, len(skipped), cut, codes, took)


def _documents(lines: Iterable[Line], skipped: list[Line]) -> Iterator[Document]:
    """The good ones; the other lines are added to `skipped`."""
    for line in lines:
        try:
            if line.fault:
                raise InputError(line.fault)
            if line.data.strip():
                yield documents.parse(line.data)[0]
        except InputError:
            skipped.append(line)


def _enough(read: Iterator[Document]) -> list[Cut]:
    """The passages of the next documents, enough for the encoder to sort by length."""
    some: list[Cut] = []
    for document in read:
        some += [(document, piece) for piece in passages.split(document)]
        if len(some) >= phrase.ENCODE_PASSAGES:
            break
    return some


def _timed(encoder: Encoder, some: Sequence[Cut]) -> tuple[list[TokenCodes], float]:
    """Token codes of passages, and the seconds that the encoder took."""
    texts = [text for document, passage in some for text in phrase.windows(document, [passage])]
    began = time.perf_counter()
    encodings = encoder.encode(texts)
    took = time.perf_counter() - began
    return phrase.pack(encoder.info.dimension, [passage for _, passage in some], encodings), took
