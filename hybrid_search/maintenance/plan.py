"""Estimate the bytes, hours and shards of an index from a sample of its documents.

The sample is encoded against the clock, and nothing is written. Everything grows in proportion to
the documents; what no sample can tell is a constant that was measured on two shared cores, each
with its file in ``benchmarks/results``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.encoder import passage_codes
from hybrid_search.encoder.base import Encoder, codebook, span_prior
from hybrid_search.errors import InputError, UsageError
from hybrid_search.ingest import document_parser
from hybrid_search.ingest.types import SourceLine
from hybrid_search.search.span_search import ENCODE_PASSAGES
from hybrid_search.text import passages, window_policy, word_codes
from hybrid_search.text.types import Document, Passage, WordCodes

DOCUMENTS = 1000
SECONDS = 15.0
"""A sample ends at so many documents, or when the encoder has worked for so many seconds."""

NEW_INDEX = IndexOptions()
"""The default options of an index on a server."""

LIST_BYTES, WORD_BYTES = 4.3, 8.3
"""Bytes per word of an embedded index: of lists (4 for its place, and the lists themselves), and of
text, terms and layout, compressed: 9,503,140 and 18,391,522 for the 2,203,329 words of calls_sgd.
"""

SERVER_CODE_BYTES = 3.01
"""Bytes of a server's index per byte of word codes, without the vectors.

Codes, text and layout: 308,043 bytes for 1,000 words as written
(``quantization_opensearch-calls_sgd``), of which vectors are 46,089, by 86,903 bytes of word codes.
New segments have each passage a second time, for replicas; merged, it is 1.25.
"""

VECTOR_SECONDS = 0.2629e-3
"""Seconds that a server takes per vector of a new index.

OpenSearch 3.5.0 wrote 3,804 vectors of 192 bytes a second (``latency_opensearch_288-calls_sgd``),
with its client on the same cores.
"""

INGEST_TIMES = 1.43
"""Seconds of an embedded ingest per second of its encoder, 194.6 by 136 (``ingest-calls_sgd``)."""

SHARD_BYTES = 50 * 1024**3
"""Largest size of a server's shard, as the makers of both servers advise."""


@dataclass(slots=True, eq=False)
class Sample:
    """Encoded documents, the lines that were none, and the seconds that the encoder took."""

    documents: int = 0
    skipped: int = 0
    codes: list[WordCodes] = field(default_factory=list)
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Load:
    """Counts and bytes on disk of some documents, indexed under one span policy.

    `server_bytes` are without replicas. Words that two passages share count once.
    """

    documents: int
    words: int
    tokens: int
    passages: int
    spans: int
    embedded_bytes: int
    server_bytes: int

    def times(self, documents: int) -> Load:
        """Return the load of a number of documents like these."""
        counts = asdict(self).items()
        return Load(**{name: round(n * documents / self.documents) for name, n in counts})


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours that indexing takes, by what limits it."""

    encoder: float
    """The encoder alone, on this machine and its device."""
    embedded: float
    """A whole ingest into an embedded index on this machine."""
    server: float
    """One server of two cores that writes the vectors."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An estimate for indexing some documents."""

    policy: str
    dimension: int
    tokens_a_second: float
    """The rate of this machine's encoder."""
    skipped: int
    """Lines of the sample that were no valid documents."""
    sample: Load
    load: Load
    """The load of all documents."""
    hours: Hours
    shards: int
    """Primary shards that a server needs."""

    @property
    def graph_dimension(self) -> int:
        """Numbers of a covering window's vector on a server."""
        return NEW_INDEX.count_graph_numbers(self.dimension)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as ``plan --json`` prints it."""
        return asdict(self)


def plan(sample: Sample, policy: str, dimension: int, documents: int | None) -> Plan:
    """Return the plan for documents like the sample's, by default for as many."""
    sample_load, rate = measure_load(sample, policy, dimension), sample.tokens / sample.seconds
    load = sample_load.times(documents or sample.documents)
    encoder = load.tokens / rate / 3600
    server = load.spans * VECTOR_SECONDS / 3600
    hours = Hours(encoder, encoder * INGEST_TIMES, server)
    shards = max(1, math.ceil(load.server_bytes / SHARD_BYTES))
    return Plan(policy, dimension, round(rate, 1), sample.skipped, sample_load, load, hours, shards)


def measure_load(sample: Sample, policy: str, dimension: int) -> Load:
    """Return the load of a sample under a span policy."""
    words = sum(int((codes.counts > 0).sum()) for codes in sample.codes)
    code_bytes = sum(len(word_codes.to_bytes(codes)) for codes in sample.codes)
    spans = sum(len(window_policy.window_bounds(codes.counts, policy)) for codes in sample.codes)
    vectors = spans * NEW_INDEX.count_graph_numbers(dimension)  # a byte for each number
    embedded = code_bytes + words * (LIST_BYTES + WORD_BYTES)
    server = code_bytes * SERVER_CODE_BYTES + vectors
    counts = sample.documents, words, sample.tokens, len(sample.codes), spans
    return Load(*counts, round(embedded), round(server))


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
    sample, most_seconds = Sample(), SECONDS if seconds is None else seconds
    documents = islice(_read_documents(lines, sample), most)
    while sample.seconds < most_seconds and (block := _next_block(documents)):
        for start in range(0, len(block), ENCODE_PASSAGES):
            _encode_block(encoder, block[start : start + ENCODE_PASSAGES], sample)
    if not any(len(codes.words) for codes in sample.codes):
        raise UsageError(
            f"the sample has no words: {sample.documents} documents and {sample.skipped} lines "
            "that are not documents were read; give other files"
        )
    return sample


def _read_documents(lines: Iterable[SourceLine], sample: Sample) -> Iterator[Document]:
    """Yield the valid documents, and count the other lines as skipped."""
    for line in lines:
        try:
            if line.fault:
                raise InputError(line.fault)
            if line.data.strip():
                yield document_parser.parse(line.data)[0]
        except InputError:
            sample.skipped += 1


def _next_block(documents: Iterator[Document]) -> list[tuple[Document, Passage]]:
    """Return passages of the next documents, enough for the encoder to sort them by length.

    Documents are whole, since a part of one would be taken for a document when it is multiplied.
    """
    block: list[tuple[Document, Passage]] = []
    for document in documents:
        block += [(document, passage) for passage in passages.split(document)]
        if len(block) >= ENCODE_PASSAGES:
            break
    return block


def _encode_block(
    encoder: Encoder, block: Sequence[tuple[Document, Passage]], sample: Sample
) -> None:
    """Add the word codes of passages to `sample`, their tokens, and the encoder's seconds."""
    texts: list[str] = []
    for document, passage in block:
        texts += passage_codes.encoder_texts(document, [passage])
    started_at = time.perf_counter()
    encodings = encoder.encode(texts)
    sample.seconds += time.perf_counter() - started_at
    sample.tokens += sum(len(encoding.offsets) for encoding in encodings)
    sample.documents += sum(passage.ordinal == 0 for _, passage in block)
    sample.codes += passage_codes.pack_word_codes(
        [document.text[passage.start : passage.end] for document, passage in block],
        [passage for _, passage in block],
        encodings,
        codebook(encoder),
        prior=span_prior(encoder),
    )
