"""Put phrases into groups, and describe the groups: name, words, wordings, examples.

A seeded sample of the phrases is clustered, and each other phrase goes to the group that it is
nearest to on average, if that is as near as the linkage allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from hybrid_search.discover.clauses import normalize_rows
from hybrid_search.discover.linkage import cluster_vectors, find_telling_words
from hybrid_search.discover.phrase_table import PhraseTable
from hybrid_search.discover.types import Occurrence, PhraseGroup, Wording
from hybrid_search.discover.word_tree import split_words
from hybrid_search.text.types import Floats
from hybrid_search.topics.types import Integers

LARGEST_SAMPLE = 5_000
"""Phrases that are compared with each other: 2 s, and 0.3 GB for their distances."""

NO_GROUP = -1
"""The label of a phrase that is near to no group."""

BLOCK_ROWS = 10_000
"""Phrases that are compared with all groups at once."""

EXAMPLES = 3
WORDINGS = 20
TELLING_WORDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The groups of some phrases.

    Attributes:
        table: The phrases.
        labels: The group of each phrase, from 0, or `NO_GROUP`, int64 ``[phrases]``.
        means: The mean of each group's phrases, by their counts, float32 ``[groups, dimension]``.
        compared: How many phrases were compared with each other.
    """

    table: PhraseTable
    labels: Integers
    means: Floats
    compared: int

    @property
    def unit_means(self) -> Floats:
        """The means with length 1, float32 ``[groups, dimension]``."""
        return normalize_rows(self.means)

    @property
    def place_labels(self) -> Integers:
        """The group of each place, int64 ``[places]``."""
        return self.labels[self.table.owners]

    def split_members(self) -> list[Integers]:
        """Return the phrases of each group, each int64 ``[members]``, in their order."""
        order = np.argsort(self.labels, kind="stable")
        ends = np.searchsorted(self.labels[order], np.arange(len(self.means) + 1))
        return [order[start:end] for start, end in pairwise(ends.tolist())]

    def count_places(self) -> Integers:
        """Return how many places each group has, int64 ``[groups]``."""
        return _count(self.place_labels, len(self.means))

    def count_documents(self) -> Integers:
        """Return how many documents each group has, int64 ``[groups]``."""
        pairs = np.stack([self.place_labels, self.table.documents], axis=1)
        distinct = np.unique(pairs[self.table.documents >= 0], axis=0)
        return _count(distinct[:, 0], len(self.means))


def group_phrases(
    table: PhraseTable, distance: float, seed: int, largest: int = LARGEST_SAMPLE
) -> Grouping:
    """Return the groups of phrases by average linkage.

    Args:
        table: The phrases.
        distance: The largest mean distance, 1 - cosine, of two groups that are merged, 0..2.
        seed: Of the sample.
        largest: How many phrases are compared with each other at most. If there are more, they are
            drawn at random, the frequent ones more likely.
    """
    counts = table.counts
    sample = _draw_sample(counts, largest, seed)
    sample_labels = cluster_vectors(table.vectors[sample], distance)
    means = _average(table.vectors[sample], sample_labels, counts[sample])
    labels = np.full(len(counts), NO_GROUP, dtype=np.int64)
    labels[sample] = sample_labels
    rest = np.flatnonzero(labels == NO_GROUP)
    for start in range(0, len(rest), BLOCK_ROWS):
        rows = rest[start : start + BLOCK_ROWS]
        # the product with a mean of unit vectors is the mean of the cosines with them
        cosines = table.vectors[rows] @ means.T
        nearest = cosines.argmax(axis=1)
        is_near = cosines[np.arange(len(rows)), nearest] >= 1.0 - distance
        labels[rows] = np.where(is_near, nearest, NO_GROUP)
    return Grouping(table, labels, means, len(sample))


def describe_groups(grouping: Grouping, numbers: Sequence[int]) -> Iterator[PhraseGroup]:
    """Yield the groups of these numbers, without a topic."""
    place_counts = grouping.count_places().tolist()
    document_counts = grouping.count_documents().tolist()
    table, unit_means, members_of = grouping.table, grouping.unit_means, grouping.split_members()
    counts = table.counts
    group_words = [
        split_words(" ".join(table.texts[member] for member in members_of[number].tolist()))
        for number in numbers
    ]
    telling_words = find_telling_words(group_words, TELLING_WORDS)
    for number, words in zip(numbers, telling_words, strict=True):
        # the nearest to the mean first
        nearness = table.vectors[members_of[number]] @ grouping.means[number]
        members = members_of[number][np.argsort(-nearness, kind="stable")]
        cosines = table.vectors[members] @ unit_means[number]
        by_count = np.argsort(-counts[members], kind="stable")
        frequent = members[by_count][:WORDINGS].tolist()
        wordings = tuple(Wording(table.texts[row], int(counts[row])) for row in frequent)
        cohesion = float(np.average(cosines, weights=counts[members]))
        examples = tuple(_choose_examples(table, members, cosines))
        yield PhraseGroup(
            name=table.texts[members[0]],
            words=tuple(words),
            count=place_counts[number],
            documents=document_counts[number],
            cohesion=cohesion,
            wordings=wordings,
            wording_count=len(members),
            examples=examples,
        )


def _draw_sample(counts: Integers, largest: int, seed: int) -> Integers:
    """Return the numbers of all phrases, or of a sample of `largest`, in their order."""
    if len(counts) <= largest:
        return np.arange(len(counts))
    generator = np.random.default_rng(seed)
    shares = counts / counts.sum()
    return np.sort(generator.choice(len(counts), largest, replace=False, p=shares))


def _average(vectors: Floats, labels: Integers, counts: Integers) -> Floats:
    """Return the mean of each label's vectors, weighted by counts; it is shorter than 1."""
    group_count = int(labels.max(initial=-1)) + 1
    sums = np.zeros((group_count, vectors.shape[1]), dtype=np.float64)
    np.add.at(sums, labels, vectors * counts[:, None])
    totals = np.bincount(labels, weights=counts, minlength=group_count)
    means: Floats = (sums / np.maximum(totals, 1.0)[:, None]).astype(np.float32)
    return means


def _count(labels: Integers, groups: int) -> Integers:
    counts: Integers = np.bincount(labels[labels >= 0], minlength=groups)
    return counts


def _choose_examples(
    table: PhraseTable, members: Integers, cosines: Floats
) -> Iterator[Occurrence]:
    """Yield a place of each of the first members, each in another document."""
    documents: set[str] = set()
    for member, cosine in zip(members.tolist(), cosines.tolist(), strict=True):
        place = table.examples[member]
        if place and place.id not in documents:
            documents.add(place.id)
            yield replace(place, cosine=cosine)
        if len(documents) == EXAMPLES:
            return
