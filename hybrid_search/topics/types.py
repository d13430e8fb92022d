"""The frozen types of mining, in the order of its stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.types import Position, ScannedPassage
from hybrid_search.text.types import Floats
from hybrid_search.topics.match import Match
from hybrid_search.topics.mention_calibration import MentionMaps

Integers = NDArray[np.int64]

CallTables = Mapping[str, Mapping[str, Integers]]
"""Calls by metadata field and value, "" and "" for all: each int64 ``[3, topics, strata]``.

They are all calls, those that were asked about, and those of them that have the topic.
"""


@dataclass(frozen=True, slots=True, eq=False)
class ScannedBlock:
    """Some consecutive passages of a scan.

    The run counts passages and documents from 0. `first_passage` is the number of the first one,
    and `documents`, int64 ``[passages]``, has the number of each passage's document.
    """

    passages: Sequence[ScannedPassage]
    first_passage: int
    documents: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Spans that are near enough to a topic, one row for each pair of span and topic.

    Attributes:
        documents: The number of the document in this run, int64 ``[n]``.
        passages: The number of the passage in this run, int64 ``[n]``.
        topics: The number of the topic, int64 ``[n]``.
        phrases: The column of the phrase that is nearest to the span, int64 ``[n]``.
        cosines: The cosine of that phrase and the span, float32 ``[n]``.
        scores: What spans are chosen by, the cosine with the prior, float32 ``[n]``.
        starts: Where the span begins in its document, int64 ``[n]``.
        ends: Where it ends.
        clause_starts: Where the first clause that the span touches begins, int64 ``[n]``.
        clause_ends: Where the last one ends.
    """

    documents: Integers
    passages: Integers
    topics: Integers
    phrases: Integers
    cosines: Floats
    scores: Floats
    starts: Integers
    ends: Integers
    clause_starts: Integers
    clause_ends: Integers

    def __len__(self) -> int:
        return len(self.topics)

    @classmethod
    def empty(cls) -> Self:
        """Return no rows."""
        none, no_score = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        return cls(none, none, none, none, no_score, no_score, none, none, none, none)

    def select(self, rows: NDArray[Any]) -> Self:
        """Return the rows with these numbers, or where a mask is true."""
        return type(self)(*(getattr(self, name)[rows] for name in self.__slots__))

    @classmethod
    def concatenate(cls, parts: Sequence[Candidates]) -> Self:
        """Return the rows of all parts; there must be at least one part."""
        columns = ([getattr(part, name) for part in parts] for name in cls.__slots__)
        return cls(*map(np.concatenate, columns))


@dataclass(frozen=True, slots=True)
class UnlikelySpans:
    """The spans below a topic's threshold that would be mentions with a lower one.

    Attributes:
        counts: How many are in each bin of log odds (`hybrid_search.topics.missed_mentions`).
        checked: The number of spans for which the topic's conditions were looked up.
        held: The number of these for which they hold.
    """

    counts: Mapping[int, int] = field(default_factory=dict)
    checked: int = 0
    held: int = 0

    @property
    def share(self) -> float:
        """The share for which the topic's conditions hold; 1 if nothing was looked up."""
        return self.held / self.checked if self.checked else 1.0

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the counts in a checkpoint, where JSON has made texts of the numbers."""
        counts = {int(number): count for number, count in values["counts"].items()}
        return cls(counts, values["checked"], values["held"])

    def __add__(self, other: UnlikelySpans) -> UnlikelySpans:
        counts = Counter(self.counts) + Counter(other.counts)
        return UnlikelySpans(dict(counts), self.checked + other.checked, self.held + other.held)


@dataclass(frozen=True, slots=True, eq=False)
class MinedBlock:
    """The matches of some whole documents, and how far a run has come with them.

    Attributes:
        matches: In the order of the documents, and of the words in them.
        documents: The number of documents so far.
        passages: The number of passages so far.
        damaged: The number of passages so far that were left out because they are damaged.
        position: Where the run continues after a restart; None if nothing is done yet.
        unlikely: The spans of these documents below each topic's threshold, by topic, if the run
            counts them.
        maps: The maps that gave the probabilities.
        calls: The calls of these documents by stratum, if the run counts what is below thresholds.
        doubtful: Spans below the thresholds of topics that a rule has under ``not``.
    """

    matches: Sequence[Match]
    documents: int
    passages: int
    damaged: int
    position: Position
    unlikely: Mapping[str, UnlikelySpans] = field(default_factory=dict)
    maps: MentionMaps | None = None
    calls: CallTables = field(default_factory=dict)
    doubtful: Sequence[Match] = ()
