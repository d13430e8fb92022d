"""The types of grouping: the public ones first, then the stages in their order."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hybrid_search.text.types import Floats
from hybrid_search.topics.types import Integers


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place where a phrase is said: ``document.text[start:end] == text``, in code points.

    Attributes:
        id: The document's id.
        turn: The number of the turn that holds it, from 0.
        speaker: The speaker of the turn, if it has one.
        start: Where the words begin in the document's text.
        end: Where they end.
        text: The words.
        cosine: Their cosine with the phrase or the group that they are an example of, -1..1.
    """

    id: str
    turn: int
    speaker: str | None
    start: int
    end: int
    text: str
    cosine: float


@dataclass(frozen=True, slots=True)
class SimilarPhrase:
    """A wording with the same meaning as a phrase, with its near duplicates.

    Attributes:
        text: The words of the best example.
        cosine: The largest cosine of a place of it with the phrase, -1..1.
        count: How many clauses say it, near duplicates included.
        wordings: How many different wordings are folded into it, itself included.
        documents: How many documents say it.
        example: The place with the largest cosine.
    """

    text: str
    cosine: float
    count: int
    wordings: int
    documents: int
    example: Occurrence

    def to_dict(self) -> dict[str, Any]:
        """Return the wording as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Wording:
    """One wording of a group, and how many places or lines have it."""

    text: str
    count: int


@dataclass(frozen=True, slots=True)
class PhraseGroup:
    """Phrases that say about the same.

    Attributes:
        name: The wording that is nearest to all others of the group.
        words: Up to five words that tell the group from the other groups.
        count: How many places or lines are in it.
        documents: How many documents say it; 0 for phrases of a text file.
        cohesion: The mean cosine of its phrases with their mean, -1..1.
        wordings: Its different wordings, the most frequent first; at most 20.
        wording_count: The number of all wordings.
        topic: The known topic that is nearest, if topics were compared.
        topic_cosine: The cosine of its mean with the nearest phrase of that topic.
        examples: Places of it, the nearest to the group's mean first.
    """

    name: str
    words: tuple[str, ...]
    count: int
    documents: int
    cohesion: float
    wordings: tuple[Wording, ...]
    wording_count: int
    topic: str | None = None
    topic_cosine: float | None = None
    examples: tuple[Occurrence, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the group as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Discovery:
    """Frequent groups that no topic covers, and the counts behind them.

    Attributes:
        groups: The groups, the first by documents and distance to the topics first.
        documents: How many documents were looked at.
        sampled: The share of the index's documents that was looked at: 1, 1/2, 1/4 ...
        clauses: How many clauses they have that can be in a group.
        covered: How many other clauses are mentions of a topic.
        small_talk: How many more are pleasantries, or give names, numbers, codes or addresses.
        wordings: How many different wordings the clauses have.
        compared: How many of these were compared with each other; the others went to the nearest.
        damaged: How many passages were left out because they are damaged.
        seed: The seed of both samples.
    """

    groups: tuple[PhraseGroup, ...]
    documents: int
    sampled: float
    clauses: int
    covered: int
    small_talk: int
    wordings: int
    compared: int
    damaged: int
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Return the discovery as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class ChosenSpans:
    """Some spans of a block of passages, one row each.

    Attributes:
        passages: The position in the block of each span's passage, int64 ``[n]``.
        starts: Where it begins in its document, int64 ``[n]``.
        ends: Where it ends.
        priors: How well its ends and length fit those of a clause, float32 ``[n]``.
        cosines: Its cosine with the phrase, float32 ``[n]``; 0 without one.
        vectors: Its unit vector, float32 ``[n, dimension]``.
        damaged: How many passages of the block were left out.
    """

    passages: Integers
    starts: Integers
    ends: Integers
    priors: Floats
    cosines: Floats
    vectors: Floats
    damaged: int

    @classmethod
    def empty(cls, dimension: int, damaged: int) -> ChosenSpans:
        """Return no rows."""
        none, no_score = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        vectors = np.zeros((0, dimension), dtype=np.float32)
        return cls(none, none, none, no_score, no_score, vectors, damaged)
