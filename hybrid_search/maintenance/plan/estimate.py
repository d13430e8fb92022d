"""Extrapolate from a sample to any number of documents: everything grows in proportion."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.encoder.base import Encoder
from hybrid_search.ingest.types import SourceLine
from hybrid_search.maintenance.plan import measured_constants
from hybrid_search.maintenance.plan.policy_recall import POLICIES, Recall, compare
from hybrid_search.maintenance.plan.sample import Sample, take_sample
from hybrid_search.text import window_policy

NUMBER_BYTES = 1
"""Bytes of a number in the graph of a new index."""

NEW_INDEX = IndexOptions()
"""The default options of an index on a server."""


@dataclass(frozen=True, slots=True)
class Load:
    """Counts and bytes on disk of some documents, indexed under one span policy.

    `embedded_bytes` are for an embedded index, `server_bytes` for a server's index without
    replicas.
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
        values = {
            name: round(value * documents / self.documents) for name, value in asdict(self).items()
        }
        return Load(**values)


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours that indexing takes, by what limits it.

    Attributes:
        encoder: The encoder alone, on this machine.
        embedded: A whole ingest into an embedded index on this machine.
        server: One server of two cores that writes the vectors.
        gpu: The encoder on a GPU, from the best case to the worst.
    """

    encoder: float
    embedded: float
    server: float
    gpu: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Plan:
    """An estimate for indexing some documents.

    Attributes:
        policy: The span policy of the index.
        dimension: Numbers of a vector.
        tokens_a_second: Rate of this machine's encoder.
        skipped: Lines of the sample that were no valid documents.
        sample: Load of the sample.
        load: Load of all documents.
        hours: Hours for all documents.
        shards: Primary shards that a server needs.
        policies: The span policies that were compared on the sample.
    """

    policy: str
    dimension: int
    tokens_a_second: float
    skipped: int
    sample: Load
    load: Load
    hours: Hours
    shards: int
    policies: Sequence[Recall]

    @property
    def graph_dimension(self) -> int:
        """Numbers of a covering window's vector on a server."""
        return NEW_INDEX.count_graph_numbers(self.dimension)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as ``plan --json`` prints it."""
        values = asdict(self)
        for recall_values, recall in zip(values["policies"], self.policies, strict=True):
            recall_values["bytes_per_1000_words"] = self.bytes_per_1000_words(recall)
        return values

    def bytes_per_1000_words(self, recall: Recall) -> int:
        """Return the bytes of a server's index for 1,000 words under one of `policies`.

        An embedded index takes the same under each policy.
        """
        vector = self.graph_dimension * NUMBER_BYTES
        fixed = self.sample.server_bytes - self.sample.spans * vector
        return round(1000 * (fixed / self.sample.words + recall.vectors_a_word * vector))


def measure_load(sample: Sample, policy: str, dimension: int) -> Load:
    """Return the load of a sample under a span policy."""
    spans = sum(len(window_policy.window_bounds(codes.counts, policy)) for codes in sample.codes)
    word_bytes = measured_constants.LIST_BYTES + measured_constants.WORD_BYTES
    embedded = sample.code_bytes + sample.words * word_bytes
    vectors = spans * NEW_INDEX.count_graph_numbers(dimension) * NUMBER_BYTES
    server = sample.code_bytes * measured_constants.SERVER_CODE_BYTES + vectors
    return Load(
        sample.documents,
        sample.words,
        sample.tokens,
        len(sample.codes),
        spans,
        round(embedded),
        round(server),
    )


def plan_lines(
    encoder: Encoder,
    lines: Iterable[SourceLine],
    policy: str,
    documents: int,
    *,
    on_gpu: bool,
) -> Plan:
    """Return the plan for documents like those of some lines.

    Args:
        encoder: The encoder, with vectors of the index's dimension.
        lines: JSON lines of sample documents.
        policy: The span policy of the index.
        documents: How many documents there will be; 0 for as many as the sample has.
        on_gpu: Whether the encoder runs on a GPU, so that its own rate is the GPU's.
    """
    window_policy.parse(policy)
    sample = take_sample(encoder, lines)
    policies = compare(encoder, sample, list(dict.fromkeys([*POLICIES, policy])))
    planned_documents = documents or sample.documents
    dimension = encoder.info.dimension
    return plan(sample, policy, dimension, planned_documents, policies, on_gpu=on_gpu)


def plan(
    sample: Sample,
    policy: str,
    dimension: int,
    documents: int,
    policies: Sequence[Recall],
    *,
    on_gpu: bool,
) -> Plan:
    """Return the plan for `documents` documents like the sample's.

    With `on_gpu` the encoder of this machine runs on a GPU, and its own rate is the GPU's.
    """
    sample_load, rate = measure_load(sample, policy, dimension), sample.tokens / sample.seconds
    full_load = sample_load.times(documents)
    writing = full_load.spans * measured_constants.VECTOR_SECONDS
    slow, fast = (rate, rate) if on_gpu else measured_constants.GPU_TOKENS
    seconds = (
        full_load.tokens / rate,
        full_load.tokens / rate * measured_constants.INGEST_TIMES,
        writing,
        full_load.tokens / fast,
        full_load.tokens / slow,
    )
    encoder, embedded, server, best, worst = (duration / 3600 for duration in seconds)
    shards = max(1, math.ceil(full_load.server_bytes / measured_constants.SHARD_BYTES))
    return Plan(
        policy,
        dimension,
        round(rate, 1),
        sample.skipped,
        sample_load,
        full_load,
        Hours(encoder, embedded, server, (best, worst)),
        shards,
        policies,
    )
