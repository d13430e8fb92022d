"""Take a sample of documents, and measure how long the encoder takes for it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from hybrid_search.encoder import passage_codes
from hybrid_search.encoder.base import Encoder, codebook, span_prior
from hybrid_search.errors import InputError, UsageError
from hybrid_search.ingest import document_parser
from hybrid_search.ingest.types import SourceLine
from hybrid_search.search import span_search
from hybrid_search.text import passages, word_codes
from hybrid_search.text.types import Document, Passage, WordCodes

DOCUMENTS = 1000
SECONDS = 15.0
"""A sample ends at so many documents, or when the encoder has worked for so many seconds."""

DocumentPassage = tuple[Document, Passage]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Encoded documents.

    Attributes:
        documents: Number of documents.
        skipped: Lines that were no valid documents.
        passages: Each passage with its document.
        codes: The word codes of each passage.
        tokens: Number of tokens that were encoded.
        seconds: How long the encoder took.
    """

    documents: int
    skipped: int
    passages: Sequence[DocumentPassage]
    codes: Sequence[WordCodes]
    tokens: int
    seconds: float

    @property
    def words(self) -> int:
        """Number of words; those that two passages share count once."""
        return sum(int((passage_codes.counts > 0).sum()) for passage_codes in self.codes)

    @property
    def code_bytes(self) -> int:
        """Size of the word codes as they are stored."""
        return sum(len(word_codes.to_bytes(passage_codes)) for passage_codes in self.codes)


def take_sample(
    encoder: Encoder,
    lines: Iterable[SourceLine],
    most: int = DOCUMENTS,
    seconds: float | None = None,
) -> Sample:
    """Return the first documents of `lines`, encoded as an ingest does.

    The sample ends when the encoder has worked for `seconds` (default `SECONDS`).

    Raises:
        UsageError: If no document has a word.
    """
    encoder.encode(["a warm-up, so that what happens only once is not timed"])
    skipped: list[SourceLine] = []
    document_passages, codes = list[DocumentPassage](), list[WordCodes]()
    encode_seconds, count, tokens = 0.0, 0, 0
    document_iterator = islice(_read_documents(lines, skipped), most)
    seconds = SECONDS if seconds is None else seconds
    while encode_seconds < seconds and (block := _next_block(document_iterator)):
        count += len({id(document) for document, _ in block})
        for start in range(0, len(block), span_search.ENCODE_PASSAGES):
            block_codes, block_tokens, spent = _encode_timed(
                encoder, block[start : start + span_search.ENCODE_PASSAGES]
            )
            codes += block_codes
            tokens += block_tokens
            encode_seconds += spent
        document_passages += block
    if not any(len(passage_codes.words) for passage_codes in codes):
        raise UsageError(
            f"the sample has no words: {count} documents and {len(skipped)} lines "
            "that are not documents were read; give other files"
        )
    return Sample(count, len(skipped), document_passages, codes, tokens, encode_seconds)


def _read_documents(lines: Iterable[SourceLine], skipped: list[SourceLine]) -> Iterator[Document]:
    """Yield the valid documents, and add the other lines to `skipped`."""
    for line in lines:
        try:
            if line.fault:
                raise InputError(line.fault)
            if line.data.strip():
                yield document_parser.parse(line.data)[0]
        except InputError:
            skipped.append(line)


def _next_block(document_iterator: Iterator[Document]) -> list[DocumentPassage]:
    """Return passages of the next documents, enough for the encoder to sort them by length."""
    block: list[DocumentPassage] = []
    for document in document_iterator:
        block += [(document, passage) for passage in passages.split(document)]
        if len(block) >= span_search.ENCODE_PASSAGES:
            break
    return block


def _encode_timed(
    encoder: Encoder, block: Sequence[DocumentPassage]
) -> tuple[list[WordCodes], int, float]:
    """Return the word codes of passages, their tokens, and the seconds that the encoder took."""
    texts = [
        text
        for document, passage in block
        for text in passage_codes.encoder_texts(document, [passage])
    ]
    started_at = time.perf_counter()
    encodings = encoder.encode(texts)
    elapsed = time.perf_counter() - started_at
    passages = [passage for _, passage in block]
    passage_texts = [document.text[passage.start : passage.end] for document, passage in block]
    codes = passage_codes.pack_word_codes(
        passage_texts, passages, encodings, codebook(encoder), prior=span_prior(encoder)
    )
    return codes, sum(len(encoding.offsets) for encoding in encodings), elapsed
