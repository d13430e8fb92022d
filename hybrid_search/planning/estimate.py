"""From a sample to a number of documents: everything is taken to grow with the documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hybrid_search import covering
from hybrid_search.planning import figures
from hybrid_search.planning.policies import Recall
from hybrid_search.planning.sample import Sample


@dataclass(frozen=True, slots=True)
class Load:
    """What some documents come to under one policy: counts, and bytes on disk of an embedded index and of a server's without replicas."""

    documents: int
    words: int
    tokens: int
    passages: int
    spans: int
    embedded_bytes: int
    server_bytes: int

    def times(self, documents: int) -> Load:
        """The load of so many documents like these."""
        grown = {name: round(value * documents / self.documents) for name, value in asdict(self).items()}
        return Load(**grown)


@dataclass(frozen=True, slots=True)
class Hours:
    """Of this machine's encoder alone, of a whole ingest into an embedded index on it, of one small server, and of a GPU (from, to)."""

    encoder: float
    embedded: float
    server: float
    gpu: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Plan:
    """The sample's load, that of all documents, hours, a server's shards, and the policies that were compared."""

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
        found = asdict(self)
        for each, recall in zip(found["policies"], self.policies, strict=True):
            each["bytes_per_1000_words"] = self.bytes_of(recall)
        return found

    def bytes_of(self, recall: Recall) -> int:
        """Bytes of an embedded index for 1,000 words, under that policy."""
        vector = self.dimension + figures.GRAPH_BYTES
        fixed = self.sample.embedded_bytes - self.sample.spans * vector
        return round(1000 * (fixed / self.sample.words + recall.vectors_a_word * vector))


def load(sample: Sample, policy: str, dimension: int) -> Load:
    """What `sample` comes to."""
    spans = sum(len(covering.bounds(each.counts, policy)) for each in sample.codes)
    embedded = sample.code_bytes + spans * (dimension + figures.GRAPH_BYTES) + sample.words * figures.WORD_BYTES
    server = sample.code_bytes * figures.SERVER_CODE_BYTES + spans * dimension * 4
    return Load(sample.documents, sample.words, sample.tokens, len(sample.codes), spans, round(embedded), round(server))


def plan(sample: Sample, policy: str, dimension: int, documents: int, policies: Sequence[Recall], *, on_gpu: bool) -> Plan:
    """The plan for `documents` like those of `sample`; `on_gpu` says that the encoder of this machine runs on one."""
    small, rate = load(sample, policy, dimension), sample.tokens / sample.seconds
    whole = small.times(documents)
    writing = whole.spans * (figures.VECTOR_SECONDS + dimension * figures.NUMBER_SECONDS)
    slow, fast = (rate, rate) if on_gpu else figures.GPU_TOKENS
    seconds = (whole.tokens / rate, whole.tokens / rate * figures.INGEST_TIMES, writing, whole.tokens / fast, whole.tokens / slow)
    encoder, embedded, server, best, worst = (each / 3600 for each in seconds)
    shards = max(1, math.ceil(whole.server_bytes / figures.SHARD_BYTES))
    return Plan(policy, dimension, round(rate, 1), sample.skipped, small, whole, Hours(encoder, embedded, server, (best, worst)), shards, policies)
