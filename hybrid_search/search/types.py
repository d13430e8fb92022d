"""The frozen types of a query's stages, in the order in which they are created."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.types import Request, StoredPassage
from hybrid_search.search.calibration import Calibration
from hybrid_search.text import spans
from hybrid_search.text.types import Floats, Ints, WordCodes

Scores = NDArray[np.float64]
Ranks = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ScoredPassage:
    """A candidate with every component of its score.

    `request` is the request that found it. `cosines` and `priors`, float32 ``[spans]``, cover all
    its spans. `cosine` belongs to the best span, and `span_score` is the score by which it is best:
    the sum of cosine and prior, or without a prior the cosine. Fusion adds the rest: `score`, both
    ranks (0 for none), and `parts`, the scores at alpha 0 (BM25 alone) and at alpha 1 (spans
    alone). `terms` is the phrase's number of distinct terms.
    """

    stored: StoredPassage
    request: Request
    cosines: Floats
    cosine: float
    span_score: float
    priors: Floats | None = None
    score: float = 0.0
    bm25_rank: int = 0
    cosine_rank: int = 0
    parts: tuple[float, float] = (0.0, 0.0)
    terms: int = 0

    @property
    def prior(self) -> float:
        """The prior added to the cosine of the best span."""
        return self.span_score - self.cosine

    @property
    def sort_key(self) -> tuple[float, float, str, int]:
        """Return a sort key for a total order: by score, then cosine, then id and ordinal."""
        return -self.score, -self.cosine, self.stored.document_id, self.stored.ordinal


@dataclass(frozen=True, slots=True, eq=False)
class Legs:
    """The scores of both legs for the same passages, the input of a fusion.

    Both scores of every passage are known. `bm25` float64 ``[n]``, 0 where no term matches; `span`
    float64 ``[n]``, the score of the best span. Ranks int64 ``[n]`` from 1, 0 beyond the leg's
    window. `terms` is the phrase's number of distinct terms.
    """

    bm25: Scores
    span: Scores
    bm25_rank: Ranks
    cosine_rank: Ranks
    terms: int
    calibration: Calibration


Group = Sequence[ScoredPassage]
"""The passages of one hit, best first: those of a document, or a single passage."""


@dataclass(frozen=True, slots=True, eq=False)
class PassageSpans:
    """All spans of one passage with their offsets in the document.

    `cosines` and `priors` float32, `starts` and `ends` int32 in code points of the document, all
    ``[spans]``. Without `priors` the spans are chosen by cosine alone.
    """

    cosines: Floats
    starts: Ints
    ends: Ints
    priors: Floats | None = None

    @property
    def scores(self) -> Floats:
        """The scores by which spans are chosen: the sums of cosine and prior."""
        return self.cosines if self.priors is None else self.cosines + self.priors

    @classmethod
    def from_passage(
        cls, start: int, codes: WordCodes, cosines: Floats, priors: Floats | None = None
    ) -> Self:
        """Return the spans of a passage that starts at offset `start` of its document."""
        first, last = spans.bounds(codes.counts)
        offset = np.int32(start)
        return cls(cosines, codes.words[first, 0] + offset, codes.words[last, 1] + offset, priors)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a chosen span: its passage in a list, and `start` and `end` in the document."""

    passage: int
    start: int
    end: int
    cosine: float
    prior: float = 0.0
