"""`DocumentView`: a whole document with the scores of its words for a phrase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hybrid_search.search.hit import Span, TurnPlace


@dataclass(frozen=True, slots=True)
class PassageScores:
    """The scores of one passage of a document, ``text[start:end]``.

    Attributes:
        passage: The number of the passage, from 0.
        start: Where it starts in the document's text.
        end: Where it ends.
        score: The fused score, ``alpha * spans_part + (1 - alpha) * bm25_part``.
        bm25: The BM25 score, 0 if no term matches.
        cosine: The cosine of the best span, -1..1.
        prior: The prior added to that cosine, as in `Span`.
        bm25_part: The BM25 score as the fusion maps it, 0..1.
        spans_part: The best span's score as the fusion maps it, 0..1.
    """

    passage: int
    start: int
    end: int
    score: float
    bm25: float
    cosine: float
    prior: float
    bm25_part: float
    spans_part: float


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A document as stored in its index, with the scores of a phrase.

    Attributes:
        id: The document's id.
        text: Its text. Characters between passages contained no word and are not stored; blanks and
            newlines take their place.
        turns: Its turns that contain a word.
        metadata: All keys of the document but id, text and turns.
        passages: The scores of its passages, in order; empty without a phrase.
        spans: Its best non-overlapping spans, best first; empty without a phrase.
        words: Start and end of each word, and the score of the best span that contains it, as the
            fusion maps it, 0..1; empty without a phrase.
        highlights: Start and end of the words that BM25 matched.
        plan: The query, the model, and warnings about damage.
    """

    id: str
    text: str
    turns: Sequence[TurnPlace]
    metadata: Mapping[str, Any]
    passages: Sequence[PassageScores] = ()
    spans: Sequence[Span] = ()
    words: Sequence[tuple[int, int, float]] = ()
    highlights: Sequence[tuple[int, int]] = ()
    plan: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the document as a JSON object."""
        return {
            "id": self.id,
            "text": self.text,
            "turns": [turn.to_dict() for turn in self.turns],
            "metadata": dict(self.metadata),
            "passages": [asdict(passage) for passage in self.passages],
            "spans": [span.to_dict() for span in self.spans],
            "words": [[*word] for word in self.words],
            "highlights": [[*place] for place in self.highlights],
            "plan": dict(self.plan),
        }
