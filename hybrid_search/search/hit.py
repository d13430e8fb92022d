"""The parts of an answer: a `Hit` with its `Span`s and turns, and a `DocumentView`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Span:
    """The words that match: ``document.text[start:end] == text``, in code points.

    Attributes:
        start: Where the span starts in the document's text.
        end: Where it ends.
        text: The words.
        cosine: Their cosine with the phrase, -1..1.
        turn: The number of the turn that contains it, from 0.
        turn_start: ``turns[turn].text[turn_start:turn_end] == text``.
        turn_end: See `turn_start`.
        speaker: The speaker of the turn, if it has one.
        start_ms: When the words start, in milliseconds, if the turn has times.
        end_ms: When they end.
        times: The origin of these times: ``words`` if the source has times for the first and last
            word, ``interpolated`` by characters from the times around them, or ``turn`` if the turn
            has only one time. None without times.
        turn_metadata: All other keys of the turn, if it has any.
        prior: The prior that was added to the cosine: how well the ends and length fit a clause. 0
            if spans were chosen by cosine alone.
        probability: The probability that the words express the phrase, 0..1, if `min_probability`
            was given.
    """

    start: int
    end: int
    text: str
    cosine: float
    turn: int = 0
    turn_start: int = 0
    turn_end: int = 0
    speaker: str | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    times: Literal["words", "interpolated", "turn"] | None = None
    turn_metadata: Mapping[str, Any] | None = field(default=None, hash=False)
    prior: float = 0.0
    probability: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the span as a JSON object, with `turn_metadata` and `probability` if any."""
        values = _drop_turn_metadata(asdict(self))
        if self.probability is None:
            del values["probability"]
        return values


def _drop_turn_metadata(values: dict[str, Any]) -> dict[str, Any]:
    """Drop `turn_metadata` from the values of a span or turn if it is empty."""
    if values["turn_metadata"] is None:
        del values["turn_metadata"]
    return values


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """The place of a turn in its document: ``document.text[start:end]``, in code points.

    Attributes:
        turn: The number of the turn, from 0.
        start: Where it starts in the document's text.
        end: Where it ends.
        speaker: The speaker, if known.
        start_ms: When the turn starts, in milliseconds, if known.
        end_ms: When the turn ends.
        turn_metadata: All other keys of the turn, if it has any.
    """

    turn: int
    start: int
    end: int
    speaker: str | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    turn_metadata: Mapping[str, Any] | None = field(default=None, hash=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the turn as a JSON object, without `turn_metadata` if it is empty."""
        return _drop_turn_metadata(asdict(self))


@dataclass(frozen=True, slots=True)
class Hit:
    """A matching document, or with ``group_by="passage"`` a matching passage.

    Attributes:
        id: The document's id.
        passage: The number of its best passage, from 0.
        score: The fused score of that passage.
        bm25: Its BM25 score, 0 if no term matches.
        cosine: The cosine of its best span, -1..1.
        bm25_rank: Its rank by BM25, from 1; None beyond the window, or if no term matches.
        cosine_rank: Its rank by its best span, from 1; None beyond the window.
        metadata: All keys of the document but id, text and turns.
        spans: The best spans of the hit's passages, best first.
        text: The text of the best passage.
        start: Where that text starts in the document.
        explanation: The components of the score, if requested.
        highlights: Start and end, in the document, of the words in the best passage that BM25
            matched, if requested.
        prior: The prior added to the cosine of its best span, as in `Span`.
        turns: The turns that the best passage has words from.
        phrase: The phrase that fits the best passage best, if the query had different phrases.
        probability: The probability that its best span expresses the phrase, 0..1; None if the
            model has no measured map, or spans are chosen by cosine.
    """

    id: str
    passage: int
    score: float
    bm25: float
    cosine: float
    bm25_rank: int | None
    cosine_rank: int | None
    metadata: Mapping[str, Any]
    spans: list[Span]
    text: str = ""
    start: int = 0
    explanation: Mapping[str, Any] | None = None
    highlights: list[tuple[int, int]] | None = None
    prior: float = 0.0
    turns: list[TurnPlace] = field(default_factory=list)
    phrase: str | None = None
    probability: float | None = None

    def to_dict(self, *, texts: bool = False) -> dict[str, Any]:
        """Return the hit as a JSON object.

        Explanation and highlights are included only if requested, `phrase` only if the query had
        several, and `text`, `start` and `turns` of the passage only with `texts`.
        """
        optional = ("explanation", "highlights", "phrase")
        omitted = {name for name in optional if getattr(self, name) is None}
        omitted |= {"spans", "turns"} if texts else {"spans", "turns", "text", "start"}
        hit = {item.name: getattr(self, item.name) for item in fields(self)}
        values = {name: value for name, value in hit.items() if name not in omitted}
        values["spans"] = [span.to_dict() for span in self.spans]
        return values | ({"turns": [turn.to_dict() for turn in self.turns]} if texts else {})


def format_parts(hit: Hit) -> str:
    """Return the numbers shown next to a hit's score: probability, BM25 and cosine."""
    known = "" if hit.probability is None else f"probability {hit.probability:.2f}, "
    return f"{known}BM25 {hit.bm25:.2f}, cosine {hit.cosine:.3f}"


def format_span(span: Span) -> str:
    """Format a span on one line: cosine, speaker, words, offsets."""
    speaker = f"{span.speaker}: " if span.speaker else ""
    return f"{span.cosine:.3f}  {speaker}{' '.join(span.text.split())!r} [{span.start}:{span.end}]"


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
