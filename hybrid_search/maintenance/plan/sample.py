"""A sample of documents, encoded with the time taken."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from hybrid_search.encoder import passage_codes
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import InputError, UsageError
from hybrid_search.ingest import document_parser as document_parser
from hybrid_search.ingest.types import SourceLine
from hybrid_search.search import span_search
from hybrid_search.text import passages, token_codes
from hybrid_search.text.types import Document, Passage, TokenCodes

DOCUMENTS = 1000
SECONDS = 15.0
"""A sample ends with so many documents, or when the encoder has had so many seconds."""

DocumentPassage = tuple[Document, Passage]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Documents and their passages, with the token codes of each; `seconds` are the encoder's,
    `skipped` lines were no documents.
    """

    documents: int
    skipped: int
    passages: Sequence[DocumentPassage]
    codes: Sequence[TokenCodes]
    seconds: float

    @property
    def words(self) -> int:
        """Words, those that two passages share counted once."""
        return sum(int((passage_codes.counts > 0).sum()) for passage_codes in self.codes)

    @property
    def tokens(self) -> int:
        """Tokens of all passages."""
        return sum(len(passage_codes.codes) for passage_codes in self.codes)

    @property
    def code_bytes(self) -> int:
        """Bytes of the token codes as they are stored."""
        return sum(len(token_codes.to_bytes(passage_codes)) for passage_codes in self.codes)


def take_sample(
    encoder: Encoder, lines: Iterable[SourceLine], most: int = DOCUMENTS, seconds: float = SECONDS
) -> Sample:
    """The first documents of `lines`, encoded as an ingest does.

    Raises UsageError where there is none with a word.
    """
    encoder.encode(["once, so that nothing is timed that is done only once"])
    skipped: list[SourceLine] = []
    document_passages, codes, encode_seconds, count = (
        list[DocumentPassage](),
        list[TokenCodes](),
        0.0,
        0,
    )
    document_iterator = islice(_read_documents(lines, skipped), most)
    while encode_seconds < seconds and (block := _next_block(document_iterator)):
        count += len({id(document) for document, _ in block})
        for start in range(0, len(block), span_search.ENCODE_PASSAGES):
            block_codes, spent = _encode_timed(
                encoder, block[start : start + span_search.ENCODE_PASSAGES]
            )
            codes += block_codes
            encode_seconds += spent
        document_passages += block
    if not any(len(passage_codes.codes) for passage_codes in codes):
        raise UsageError(
            f"no document with a word to plan by: {count} documents were read, and {len(skipped)} lines that are none"
        )
    return Sample(count, len(skipped), document_passages, codes, encode_seconds)


def _read_documents(lines: Iterable[SourceLine], skipped: list[SourceLine]) -> Iterator[Document]:
    """The good ones; the other lines are added to `skipped`."""
    for line in lines:
        try:
            if line.fault:
                raise InputError(line.fault)
            if line.data.strip():
                yield document_parser.parse(line.data)[0]
        except InputError:
            skipped.append(line)


def _next_block(document_iterator: Iterator[Document]) -> list[DocumentPassage]:
    """The passages of the next documents, enough for the encoder to sort by length."""
    block: list[DocumentPassage] = []
    for document in document_iterator:
        block += [(document, passage) for passage in passages.split(document)]
        if len(block) >= span_search.ENCODE_PASSAGES:
            break
    return block


def _encode_timed(
    encoder: Encoder, block: Sequence[DocumentPassage]
) -> tuple[list[TokenCodes], float]:
    """Token codes of passages, and the seconds that the encoder took."""
    texts = [
        text
        for document, passage in block
        for text in passage_codes.encoder_texts(document, [passage])
    ]
    started_at = time.perf_counter()
    encodings = encoder.encode(texts)
    elapsed = time.perf_counter() - started_at
    return passage_codes.pack_token_codes(
        encoder.info.dimension, [passage for _, passage in block], encodings
    ), elapsed
