"""Discover what is said often that no topic covers: clauses, folded, grouped and ranked.

One scan over the word codes chooses the clauses. They are grouped, except mentions of a known topic
and small talk. Memory is bounded: `ClauseStore` takes a sample of the documents if
all are too many, and `groups` compares a sample of the wordings with each other.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import ScannedPassage
from hybrid_search.discover.clauses import SpanReader, find_clauses, require_prior
from hybrid_search.discover.groups import (
    LARGEST_SAMPLE,
    Grouping,
    describe_groups,
    group_phrases,
)
from hybrid_search.discover.options import DiscoverOptions
from hybrid_search.discover.phrase_table import PhraseTable, build_table
from hybrid_search.discover.small_talk import encode_formulas, is_small_talk
from hybrid_search.discover.types import ChosenSpans, Discovery, Occurrence, PhraseGroup
from hybrid_search.encoder.base import Encoder, span_prior
from hybrid_search.parameters import complete
from hybrid_search.search.calibration import LoadCalibration
from hybrid_search.search.no_hits import describe_empty_index
from hybrid_search.search.pipeline import match_encoder_to_index
from hybrid_search.text.filters import compile_where
from hybrid_search.text.types import Floats, Halves
from hybrid_search.topics.blocks import read_blocks, score_blocks
from hybrid_search.topics.mention_calibration import choose_maps
from hybrid_search.topics.topic_matrix import TopicMatrix, build_matrix
from hybrid_search.topics.topics import Topics

_log = logging.getLogger(__name__)

NEAR_TOPIC = 0.25
"""The distance, 1 - cosine, from which on a group is no variation of a known topic."""

CAPACITY = 250_000
"""Clauses in memory: about 220 MB with vectors of 256 numbers."""


@dataclass(slots=True, eq=False)
class ClauseStore:
    """Holds at most `capacity` clauses, of all documents, a half, a quarter, and so on.

    Each document has a fixed random number from its id and the seed. When the clauses get too many,
    documents with a number in the upper half are dropped, and ignored from then on. The sample does
    not depend on the order of the scan: it is the largest that fits.

    `documents` has 1 for each document that was looked at; `covered` and `small_talk` have how many
    of its clauses are mentions of a topic, or small talk. Documents that the sample has dropped
    since stay in all three: `count_sampled` leaves them out.
    """

    seed: int
    capacity: int = CAPACITY
    halvings: int = 0
    documents: dict[str, int] = field(default_factory=dict)
    covered: Counter[str] = field(default_factory=Counter)
    small_talk: Counter[str] = field(default_factory=Counter)
    _clauses: list[tuple[Occurrence, Halves]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._clauses)

    @property
    def places(self) -> Sequence[Occurrence]:
        """The places of the clauses, in the order of `PhraseTable.owners`."""
        return [place for place, _ in self._clauses]

    @property
    def sampled(self) -> float:
        """The share of all documents in the sample."""
        return 0.5**self.halvings

    def takes(self, document_id: str) -> bool:
        """Return whether a document is in the sample, as it is now."""
        text = f"{self.seed}/{document_id}".encode("utf-8", "surrogatepass")
        number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
        return number >> (64 - self.halvings) == 0

    def add(self, place: Occurrence, vector: Floats) -> None:
        """Take a clause, if its document is in the sample."""
        if self.takes(place.id):
            self._clauses.append((place, vector.astype(np.float16)))
        while len(self._clauses) > self.capacity and self.halvings < 64:
            self.halvings += 1
            self._clauses = [row for row in self._clauses if self.takes(row[0].id)]

    def takes_passage(self, passage: ScannedPassage) -> bool:
        """Return whether the document of a passage is in the sample, and count it if it is."""
        is_taken = self.takes(passage.document_id)
        if is_taken:
            self.documents[passage.document_id] = 1
        return is_taken

    def count_sampled(self, counts: Mapping[str, int]) -> int:
        """Return the sum of the counts of the documents that are in the sample now."""
        return sum(counts[name] for name in filter(self.takes, counts))

    def fold(self) -> PhraseTable:
        """Return the different wordings: clauses of the same words are one phrase.

        Its vector is the mean over all the contexts in which it was said, as in McPhraSy.
        """
        return build_table((place.text, vector, place) for place, vector in self._clauses)


Covers = Callable[[int, str | None], bool]
"""Returns whether a row, said by this speaker, is a mention of a topic."""


def find_covered(matrix: TopicMatrix, spans: ChosenSpans) -> Covers:
    """Return the function that tells which of these spans are mentions of a topic.

    As in mining, a mention is above the topic's limit, not nearer to a phrase under `not`, and said
    by one of its speakers. Conditions on metadata are ignored.
    """
    scores = spans.vectors @ matrix.vectors.T + spans.priors[:, None]
    mentions = []
    for topic, limit in enumerate(matrix.limits):
        own = matrix.owners == topic
        meant = scores[:, own & matrix.is_meant].max(axis=1)
        not_meant = scores[:, own & ~matrix.is_meant].max(axis=1, initial=-np.inf)
        mentions.append((meant >= limit) & (meant >= not_meant))

    by_row = np.stack(mentions, axis=1)

    def covers(row: int, speaker: str | None) -> bool:
        topics = (matrix.topics[int(number)] for number in np.flatnonzero(by_row[row]))
        return any(not topic.speakers or speaker in topic.speakers for topic in topics)

    return covers


def find_nearest(matrix: TopicMatrix, vector: Floats) -> tuple[str, float]:
    """Return the topic that has the phrase nearest to a unit vector, and its cosine."""
    columns = np.flatnonzero(matrix.is_meant)
    cosines = matrix.vectors[columns] @ vector
    best = int(cosines.argmax())
    topic = matrix.topics[int(matrix.owners[columns[best]])]
    return topic.name, float(cosines[best])


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

    At most `capacity` clauses are in memory, and `sample` wordings are compared with each other.
    The errors are those of `Client.discover`, which has the options.
    """
    values = complete(DiscoverOptions, options, "Client.discover")
    store, known_topics, damaged = scan_clauses(
        backend, encoder, load_calibration, index, topics, options, capacity
    )
    documents = store.count_sampled(store.documents)
    if not documents:
        _log.warning("%s", describe_empty_index(index))
    grouping = group_phrases(store.fold(), values["distance"], values["seed"], sample)
    numbers = rank_groups(grouping, known_topics)[: values["groups"]]
    return Discovery(
        tuple(_describe(grouping, known_topics, numbers)),
        documents=documents,
        sampled=store.sampled,
        clauses=len(store),
        covered=store.count_sampled(store.covered),
        small_talk=store.count_sampled(store.small_talk),
        wordings=len(grouping.table.texts),
        compared=grouping.compared,
        damaged=damaged,
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
) -> tuple[ClauseStore, TopicMatrix | None, int]:
    """Return the clauses of an index that no topic covers, without small talk.

    The others are the known topics, and the number of damaged passages. The parameters are those of
    `discover`.
    """
    values = complete(DiscoverOptions, options, "Client.discover")
    spec, fields = backend.read_head(index)
    encoder = match_encoder_to_index(encoder, index, spec)
    prior = require_prior(span_prior(encoder), spec.model)
    conditions = compile_where(values["where"], fields)
    known_topics = None
    if topics:
        maps = choose_maps(topics, spec, load_calibration, has_prior=True)
        known_topics = build_matrix(encoder, topics, maps.find)
    reader = SpanReader(backend, index, frozenset(values["speakers"]), conditions)
    store, is_formula, damaged = ClauseStore(values["seed"], capacity), encode_formulas(encoder), 0
    choose = partial(
        find_clauses, dimension=spec.dimension, prior=prior, least_words=values["least_words"]
    )
    passages = filter(store.takes_passage, backend.scan_codes(index))
    for block, spans in score_blocks(read_blocks(passages), choose):
        damaged += spans.damaged
        covers = find_covered(known_topics, spans) if known_topics else None
        are_formulas = is_formula(spans.vectors)
        for row, place in reader.read(block.passages, spans):
            if covers and covers(row, place.speaker):
                store.covered[place.id] += 1
            elif are_formulas[row] or is_small_talk(place.text):
                store.small_talk[place.id] += 1
            else:
                store.add(place, spans.vectors[row])
    return store, known_topics, damaged + len(reader.damaged)


def rank_groups(grouping: Grouping, topics: TopicMatrix | None) -> list[int]:
    """Return the numbers of all groups, the most important first.

    A group counts by its documents, but by no more than its different wordings: what is said in
    the same words in every call, as "thank you so much", is a formula. A group whose mean is nearer
    to a phrase of a topic than `NEAR_TOPIC` counts less, down to 0 for the phrase itself.
    """
    wordings = [len(members) for members in grouping.split_members()]
    scores = np.minimum(grouping.count_documents(), wordings).astype(np.float64)
    if topics:
        cosines = np.array([find_nearest(topics, mean)[1] for mean in grouping.unit_means])
        scores *= np.clip((1.0 - cosines) / NEAR_TOPIC, 0.0, 1.0)
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return order


def _describe(
    grouping: Grouping, topics: TopicMatrix | None, numbers: list[int]
) -> Iterator[PhraseGroup]:
    """Yield the groups of these numbers, with their nearest topics."""
    means = grouping.unit_means
    for number, group in zip(numbers, describe_groups(grouping, numbers), strict=True):
        if topics is None:
            yield group
        else:
            topic, cosine = find_nearest(topics, means[number])
            yield replace(group, topic=topic, topic_cosine=cosine)
