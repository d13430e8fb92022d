"""A whole document with the scores of its words under a phrase: `DocumentView`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hybrid_search.search.result import Span, TurnPlace


@dataclass(frozen=True, slots=True)
class PassageScores:
    """The scores of one passage of a document, which is ``text[start:end]``.

    Attributes:
        passage: Its number, from 0.
        start: Where it begins in the document's text.
        end: Where it ends.
        score: The fused score, ``alpha * spans_part + (1 - alpha) * bm25_part``.
        bm25: The BM25 score, 0 if no term matches.
        cosine: The cosine of its best span, -1..1.
        prior: What was added to that cosine, as in `Span`.
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
    """A document as its index stores it, and where a phrase fits it.

    Attributes:
        id: The document's id.
        text: Its text. What stood between passages had no word, and is blanks and newlines here.
        turns: Its turns that have a word.
        metadata: All keys of the document but id, text and turns.
        passages: The scores of its passages, in their order; none without a phrase.
        spans: Its best spans, which do not overlap, best first; none without a phrase.
        words: Start and end of each word, and the score of the best span that holds it, as the
            fusion maps it, 0..1; none without a phrase.
        highlights: Start and end of the words that BM25 matched.
        plan: What was asked, of which model, and warnings of what is damaged.
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
        """Return the document as it stands in JSON."""
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
