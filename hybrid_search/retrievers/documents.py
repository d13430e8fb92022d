"""A hit as a document of any framework: an id, a content, metadata and a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hybrid_search.search.hit import Hit

OWN_KEY = "hybrid_search"
"""The key of the metadata that has the spans, offsets and scores; all others are the caller's."""

PASSAGE, TURN = "passage", "turn"
CONTENTS = (PASSAGE, TURN)
"""The kinds of content of a document."""


@dataclass(frozen=True, slots=True)
class RetrievedDocument:
    """A hit as frameworks take it.

    Attributes:
        id: The id of the passage, unique in its index: ``<document id>#<passage>``.
        document_id: The id of the document that it is from.
        text: The content: the passage, or the turn around its best span.
        start: Where the content begins in the document, in code points.
        metadata: The caller's own keys, and under `OWN_KEY` all numbers and spans of the hit.
        score: The fused score, 0..1 unless another fusion was requested.
    """

    id: str
    document_id: str
    text: str
    start: int
    metadata: dict[str, Any]
    score: float

    @property
    def end(self) -> int:
        """The end of the content in the document."""
        return self.start + len(self.text)


def build_document(hit: Hit, content: str) -> RetrievedDocument:
    """Return a hit as a document; `content` is one of `CONTENTS`.

    `OWN_KEY` holds the hit as `query --json` prints it, with its turns. Its ``start`` and ``end``
    are the content's, so that ``text[span["start"] - start :]`` begins with the words of a span in
    the content.
    """
    start, text = _select_turn(hit) if content == TURN else (hit.start, hit.text)
    values = hit.to_dict(texts=True) | {"start": start, "end": start + len(text)}
    del values["text"]
    metadata = dict(values.pop("metadata"))
    return RetrievedDocument(
        id=f"{hit.id}#{hit.passage}",
        document_id=hit.id,
        text=text,
        start=start,
        metadata={**metadata, OWN_KEY: values},
        score=hit.score,
    )


def _select_turn(hit: Hit) -> tuple[int, str]:
    """Return start and text of the turn around the best span that is in the hit's passage.

    Of a turn that is longer than a passage that is the piece in the passage. Without such a span,
    as with ``spans=0``, it is the whole passage.
    """
    end_of_text = hit.start + len(hit.text)
    for span in hit.spans:
        if hit.start <= span.start and span.end <= end_of_text:
            for turn in hit.turns:
                if turn.turn == span.turn:
                    start = max(turn.start, hit.start)
                    return start, hit.text[start - hit.start : turn.end - hit.start]
    return hit.start, hit.text
