"""What a query gives back: a `Result` of `Hit`s, each with the `Span`s that matched and their true
offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """Words that match: ``document.text[start:end] == text``, in code points.

    `cosine` is in -1..1. `turn` counts from 0, and ``turns[turn].text[turn_start:turn_end] ==
    text``. Times are those of the turn, in milliseconds.
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

    def to_dict(self) -> dict[str, Any]:
        """The span as JSON has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Hit:
    """A document, or a passage of it.

    `score` is fused; `bm25`, `cosine` and the ranks are those of its best passage, number
    `passage`.

    A rank counts from 1 and is None beyond the leg's window, or where no term matches. `text` is
    the best passage's text, which starts at `start`. `highlights` are start and end, in the
    document, of the passage's words that made its BM25 score.
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

    def to_dict(self) -> dict[str, Any]:
        """The hit as JSON has it: without the passage's text; explanation and highlights only where
        they were asked for.
        """
        omitted = {name for name in ("explanation", "highlights") if getattr(self, name) is None}
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in {"text", "start", *omitted}
        }

    def marked(self, before: str, after: str, encode: Any = str) -> str:
        """The passage's text with its spans between `before` and `after`; `encode` is applied to
        the text.
        """
        pieces: list[str] = []
        position, end_of_text = 0, self.start + len(self.text)
        bounds = sorted(
            (span.start - self.start, span.end - self.start)
            for span in self.spans
            if self.start <= span.start and span.end <= end_of_text
        )
        for start, end in bounds:
            pieces += [
                encode(self.text[position:start]),
                before,
                encode(self.text[start:end]),
                after,
            ]
            position = end
        return "".join([*pieces, encode(self.text[position:])])


@dataclass(frozen=True, slots=True)
class Result:
    """Hits, best first.

    `total` counts all documents (or passages) that were fused; `plan` says what ran and why.

    `facets`, where they were asked for, are each field's values and how many documents have them.
    """

    hits: list[Hit]
    total: int
    plan: Mapping[str, Any] = field(default_factory=dict)
    facets: Mapping[str, Mapping[str | int | float | bool, int]] | None = None

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON has it."""
        facets = (
            {}
            if self.facets is None
            else {
                "facets": {
                    name: [[*pair] for pair in counts.items()]
                    for name, counts in self.facets.items()
                }
            }
        )
        return {
            "hits": [hit.to_dict() for hit in self.hits],
            "total": self.total,
            "plan": dict(self.plan),
            **facets,
        }

    def __repr__(self) -> str:
        lines = [f"{len(self.hits)} of {self.total} hits for {self.plan.get('phrase')!r}"]
        for number, hit in enumerate(self.hits, 1):
            lines.append(
                f"{number:>3}. {hit.score:.3f}  {hit.id}  (bm25 {hit.bm25:.2f}, cosine {hit.cosine:.3f})"
            )
            lines += [f"       {format_span(span)}" for span in hit.spans]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{hit.score:.3f}</td><td>{escape(hit.id)}</td><td>{hit.bm25:.2f}</td><td>{hit.cosine:.3f}</td>"
            f"<td style='text-align:left;white-space:pre-line'>{hit.marked('<mark>', '</mark>', escape)}</td></tr>"
            for hit in self.hits
        )
        head = "".join(f"<th>{name}</th>" for name in ("score", "id", "BM25", "cosine", "passage"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def format_span(span: Span) -> str:
    """A span in one line: cosine, speaker, words, offsets."""
    speaker = f"{span.speaker}: " if span.speaker else ""
    return f"{span.cosine:.3f}  {speaker}{' '.join(span.text.split())!r} [{span.start}:{span.end}]"
