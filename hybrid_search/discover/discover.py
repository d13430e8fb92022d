"""Discover what is said often that no topic covers: clauses, folded, grouped and ranked.

One scan over the word codes chooses the clauses, and those that are no mention of a known topic
and no small talk are grouped. Memory is bounded: `clause_store` takes a sample of the documents if
all are too many, and `groups` compares a sample of the wordings with each other.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import ScannedPassage
from hybrid_search.discover.clause_store import CAPACITY, ClauseStore
from hybrid_search.discover.clauses import find_clauses, require_prior
from hybrid_search.discover.groups import (
    LARGEST_SAMPLE,
    Grouping,
    describe_groups,
    group_phrases,
)
from hybrid_search.discover.known_topics import KnownTopics
from hybrid_search.discover.options import DiscoverOptions
from hybrid_search.discover.small_talk import SmallTalk, is_small_talk
from hybrid_search.discover.span_reader import SpanReader
from hybrid_search.discover.types import Discovery, PhraseGroup
from hybrid_search.encoder.base import Encoder, span_prior
from hybrid_search.ingest.shards import ALL_DOCUMENTS
from hybrid_search.parameters import complete
from hybrid_search.search.calibration import LoadCalibration
from hybrid_search.search.no_hits import describe_empty_index
from hybrid_search.search.pipeline import match_encoder_to_index
from hybrid_search.text.filters import compile_where
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.topics.blocks import read_blocks, score_blocks
from hybrid_search.topics.topics import Topics

_log = logging.getLogger(__name__)

NEAR_TOPIC = 0.25
"""The distance, 1 - cosine, from which on a group is no variation of a known topic."""


def discover(
    backend: Backend,
    encoder: Encoder,
    load_calibration: LoadCalibration,
    index: str,
    topics: Topics | None,
    options: DiscoverOptions,
    capacity: int = CAPACITY,
    sample: int = LARGEST_SAMPLE,
) -> Discovery:
    """Return the groups of clauses that no topic covers, the most important first.

    Args:
        backend: The store that holds the index.
        encoder: The full encoder of the model.
        load_calibration: Returns the map from scores to probabilities.
        index: The index.
        topics: What is known already, if anything is.
        options: See there.
        capacity: How many clauses are in memory at most.
        sample: How many wordings are compared with each other at most.

    Errors of the stages pass through: UsageError for a value that is not allowed,
    IndexMissingError, ModelError for an index of another model or a model without a span prior.
    """
    values = complete(DiscoverOptions, options, "Client.discover")
    scan = scan_clauses(backend, encoder, load_calibration, index, topics, options, capacity)
    if not scan.documents:
        _log.warning("%s", describe_empty_index(index))
    grouping = group_phrases(scan.store.fold(), values["distance"], values["seed"], sample)
    numbers = rank_groups(grouping, scan.topics)[: values["groups"]]
    return Discovery(
        tuple(_describe(grouping, scan.topics, numbers)),
        documents=scan.documents,
        sampled=scan.store.sampled,
        clauses=len(scan.store),
        covered=scan.covered,
        small_talk=scan.small_talk,
        wordings=len(grouping.table.texts),
        compared=grouping.compared,
        damaged=scan.damaged + len(scan.reader.damaged),
        seed=values["seed"],
    )


def scan_clauses(
    backend: Backend,
    encoder: Encoder,
    load_calibration: LoadCalibration,
    index: str,
    topics: Topics | None,
    options: DiscoverOptions,
    capacity: int = CAPACITY,
) -> ClauseScan:
    """Return the clauses of an index that no topic covers; see `discover` for the parameters."""
    values = complete(DiscoverOptions, options, "Client.discover")
    spec, fields = backend.read_head(index)
    encoder = match_encoder_to_index(encoder, index, spec)
    prior = require_prior(span_prior(encoder), spec.model)
    known_topics = KnownTopics.load(encoder, load_calibration, topics, spec) if topics else None
    conditions = compile_where(values["where"], fields)
    reader = SpanReader(backend, index, frozenset(values["speakers"]), conditions)
    store, small_talk = ClauseStore(values["seed"], capacity), SmallTalk.load(encoder)
    scan = ClauseScan(reader, store, known_topics, small_talk)
    scan.run(spec.dimension, prior, values["least_words"])
    return scan


@dataclass(slots=True, eq=False)
class ClauseScan:
    """Fills a store with the clauses of an index that no topic covers, without small talk.

    Documents, and what is left out of each, are counted by id: the sample may shrink later.
    """

    reader: SpanReader
    store: ClauseStore
    topics: KnownTopics | None
    phrases: SmallTalk
    damaged: int = 0
    _documents: set[str] = field(default_factory=set)
    _covered: Counter[str] = field(default_factory=Counter)
    _small_talk: Counter[str] = field(default_factory=Counter)

    @property
    def documents(self) -> int:
        """How many documents of the sample were looked at."""
        return sum(map(self.store.takes, self._documents))

    @property
    def covered(self) -> int:
        """How many clauses of the sample are mentions of a topic."""
        return self._count_in_sample(self._covered)

    @property
    def small_talk(self) -> int:
        """How many other clauses of the sample are pleasantries, or give details."""
        return self._count_in_sample(self._small_talk)

    def run(self, dimension: int, prior: SpanPrior, least_words: int) -> None:
        """Look at all passages of the index."""
        blocks = read_blocks(self._read_passages(), ALL_DOCUMENTS)
        choose = partial(
            find_clauses,
            dimension=dimension,
            prior=prior,
            least_words=least_words,
        )
        for block, spans in score_blocks(blocks, choose):
            self.damaged += spans.damaged
            covers = self.topics.find_covered(spans) if self.topics else None
            is_near = self.phrases.find(spans.vectors)
            for row, place in self.reader.read(block.passages, spans):
                if covers and covers(row, place.speaker):
                    self._covered[place.id] += 1
                elif is_near[row] or is_small_talk(place.text):
                    self._small_talk[place.id] += 1
                else:
                    self.store.add(place, spans.vectors[row])

    def _count_in_sample(self, counts: Counter[str]) -> int:
        return sum(counts[name] for name in filter(self.store.takes, counts))

    def _read_passages(self) -> Iterator[ScannedPassage]:
        for passage in self.reader.backend.scan_codes(self.reader.index):
            if self.store.takes(passage.document_id):
                self._documents.add(passage.document_id)
                yield passage


def rank_groups(grouping: Grouping, topics: KnownTopics | None) -> list[int]:
    """Return the numbers of all groups, the most important first.

    A group counts by its documents, but by no more than its different wordings: what is said in
    the same words in every call, as "thank you so much", is a formula. A group whose mean is nearer
    to a phrase of a topic than `NEAR_TOPIC` counts less, down to 0 for the phrase itself.
    """
    wordings = [len(members) for members in grouping.split_members()]
    scores = np.minimum(grouping.count_documents(), wordings).astype(np.float64)
    if topics:
        cosines = np.array([topics.find_nearest(mean)[1] for mean in grouping.unit_means])
        scores *= np.clip((1.0 - cosines) / NEAR_TOPIC, 0.0, 1.0)
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return order


def _describe(
    grouping: Grouping, topics: KnownTopics | None, numbers: list[int]
) -> Iterator[PhraseGroup]:
    """Yield the groups of these numbers, with their nearest topics."""
    means = grouping.unit_means
    for number, group in zip(numbers, describe_groups(grouping, numbers), strict=True):
        if topics is None:
            yield group
        else:
            topic, cosine = topics.find_nearest(means[number])
            yield replace(group, topic=topic, topic_cosine=cosine)
