"""From a sample to a number of documents: everything is taken to grow with the documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hybrid_search.maintenance.plan import measured_constants
from hybrid_search.maintenance.plan.policy_recall import Recall
from hybrid_search.maintenance.plan.sample import Sample
from hybrid_search.text import window_policy


@dataclass(frozen=True, slots=True)
class Load:
    """What some documents come to under one policy: counts, and bytes on disk of an embedded index
    and of a server's without replicas.
    """

    documents: int
    words: int
    tokens: int
    passages: int
    spans: int
    embedded_bytes: int
    server_bytes: int

    def times(self, documents: int) -> Load:
        """The load of so many documents like these."""
        grown = {
            name: round(value * documents / self.documents) for name, value in asdict(self).items()
        }
        return Load(**grown)


@dataclass(frozen=True, slots=True)
class Hours:
    """Of this machine's encoder alone, of a whole ingest into an embedded index on it, of one small
    server, and of a GPU (from, to).
    """

    encoder: float
    embedded: float
    server: float
    gpu: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Plan:
    """The sample's load, that of all documents, hours, a server's shards, and the policies that
    were compared.
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

    def to_dict(self) -> dict[str, Any]:
        """The plan as the command line prints it for programs."""
        values = asdict(self)
        for recall_values, recall in zip(values["policies"], self.policies, strict=True):
            recall_values["bytes_per_1000_words"] = self.bytes_per_1000_words(recall)
        return values

    def bytes_per_1000_words(self, recall: Recall) -> int:
        """Bytes of an embedded index for 1,000 words, under that policy."""
        vector = self.dimension + measured_constants.GRAPH_BYTES
        fixed = self.sample.embedded_bytes - self.sample.spans * vector
        return round(1000 * (fixed / self.sample.words + recall.vectors_a_word * vector))


def measure_load(sample: Sample, policy: str, dimension: int) -> Load:
    """What `sample` comes to."""
    spans = sum(len(window_policy.window_bounds(codes.counts, policy)) for codes in sample.codes)
    embedded = (
        sample.code_bytes
        + spans * (dimension + measured_constants.GRAPH_BYTES)
        + sample.words * measured_constants.WORD_BYTES
    )
    server = sample.code_bytes * measured_constants.SERVER_CODE_BYTES + spans * dimension * 4
    return Load(
        sample.documents,
        sample.words,
        sample.tokens,
        len(sample.codes),
        spans,
        round(embedded),
        round(server),
    )


def plan(
    sample: Sample,
    policy: str,
    dimension: int,
    documents: int,
    policies: Sequence[Recall],
    *,
    on_gpu: bool,
) -> Plan:
    """The plan for `documents` like those of `sample`; `on_gpu` says that the encoder of this
    machine runs on one.
    """
    sample_load, rate = measure_load(sample, policy, dimension), sample.tokens / sample.seconds
    full_load = sample_load.times(documents)
    writing = full_load.spans * (
        measured_constants.VECTOR_SECONDS + dimension * measured_constants.NUMBER_SECONDS
    )
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
