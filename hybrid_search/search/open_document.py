"""Opening of a document: its text and turns, and for a phrase the scores of words and spans.

Every span of every passage is scored, one block of passages at a time, so a long document's codes
are never all in memory.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Key, PassageContent, Request
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import DocumentMissingError, show_value
from hybrid_search.search import candidates, pipeline, span_search
from hybrid_search.search.calibration import COSINE, SCORE, Calibration, LoadCalibration
from hybrid_search.search.damage import choose_remedy
from hybrid_search.search.hit import DocumentView, PassageScores, Span, TurnPlace
from hybrid_search.search.hit_builder import leave_out_weak_spans
from hybrid_search.search.query import Query
from hybrid_search.search.span_content import (
    build_span,
    find_turn,
    parse_layout,
    parse_metadata,
    read_turns,
)
from hybrid_search.search.types import PassageSpans, ScoredPassage
from hybrid_search.text import spans
from hybrid_search.text.types import Floats

_log = logging.getLogger(__name__)

BLOCK = 64
"""Number of passages read and scored together; their codes take 2 MB."""


def read_document(backend: Backend, index: str, document_id: str) -> DocumentView:
    """Return a document as stored in an index; raise DocumentMissingError if it is missing."""
    contents = read_contents(backend, index, document_id)
    view, _ = join_contents(index, document_id, contents)
    return replace(view, plan={"index": index})


def score_document(
    backend: Backend,
    encoder: Encoder,
    load_calibration: LoadCalibration,
    document_id: str,
    query: Query,
) -> DocumentView:
    """Return a document with the scores of its passages, spans and words for a phrase.

    Uses the phrase, context, index, alpha, fusion, `spans` and `spans_by` of `query`. Raises
    DocumentMissingError if the index has no document with this id.
    """
    spec, fields = backend.read_head(query.index)
    encoder = pipeline.match_encoder_to_index(encoder, query.index, spec)
    contents = read_contents(backend, query.index, document_id)
    view, warnings = join_contents(query.index, document_id, contents)
    for warning in warnings:
        _log.warning("%s", warning)
    (request,) = pipeline.build_requests(query, query.phrases, encoder, fields)
    spans_by = SCORE if request.prior else COSINE
    calibration = load_calibration(spec.precision, spec.dimension, spans_by)
    scorer = _DocumentScorer(backend, query, request, calibration)
    for block in split_blocks(list(contents)):
        scorer.add(block, contents)
    plan: dict[str, Any] = {
        "phrase": query.phrases[0],
        "index": query.index,
        "alpha": query.alpha,
        "fusion": query.fusion,
        "spans_by": spans_by,
        "model": spec.model,
    }
    if warnings or scorer.warnings:
        plan["warnings"] = [*warnings, *scorer.warnings]
    return replace(
        view,
        passages=scorer.passages,
        spans=scorer.choose_spans(),
        words=scorer.list_words(),
        highlights=sorted(scorer.highlights),
        plan=plan,
    )


def read_contents(backend: Backend, index: str, document_id: str) -> dict[Key, PassageContent]:
    """Return the contents of all passages of a document, in order.

    Raises:
        DocumentMissingError: If the index has no document with this id.
    """
    keys = backend.list_passages(index, document_id)
    if not keys:
        raise DocumentMissingError(
            f"there is no document {show_value(document_id)} in index {index!r}: "
            "take the id of a hit"
        )
    contents: dict[Key, PassageContent] = {}
    for block in split_blocks(keys):
        contents |= backend.fetch_contents(index, block)
    return {key: contents[key] for key in keys if key in contents}


def split_blocks(keys: Sequence[Key], size: int = BLOCK) -> Iterator[Sequence[Key]]:
    """Yield passages in blocks that are read together."""
    return (keys[start : start + size] for start in range(0, len(keys), size))


def join_contents(
    index: str, document_id: str, contents: Mapping[Key, PassageContent]
) -> tuple[DocumentView, list[str]]:
    """Return the document assembled from its passages, and warnings about damage."""
    text, warnings = io.StringIO(newline=""), list[str]()
    turns: dict[int, TurnPlace] = {}
    for number, content in enumerate(contents.values()):
        if content.fault:
            remedy = choose_remedy(index, content.fault.kind, [document_id])
            warnings.append(
                f"passage {number}: {content.fault.description}. To mend this: {remedy}"
            )
            continue
        end = text.seek(0, io.SEEK_END)
        text.write(_fill_gap(content.start - end))
        text.seek(content.start)
        text.write(content.text)
        turns |= {turn.turn: turn for turn in read_turns(parse_layout(content))}
    sound = next((item for item in contents.values() if not item.fault), None)
    metadata = parse_metadata(index, document_id, sound) if sound else {}
    return DocumentView(document_id, text.getvalue(), list(turns.values()), metadata), warnings


def _fill_gap(length: int) -> str:
    """Return a filler for the wordless characters between two passages."""
    return "\n" * min(length, 1) + " " * (length - 2) + "\n" * (length > 1)


@dataclass(slots=True, eq=False)
class _DocumentScorer:
    """A scorer of one document's passages, block by block, that keeps what a view shows."""

    backend: Backend
    query: Query
    request: Request
    calibration: Calibration
    passages: list[PassageScores] = field(default_factory=list)
    highlights: set[tuple[int, int]] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)
    _spans: list[tuple[float, Span]] = field(default_factory=list)
    _words: dict[tuple[int, int], float] = field(default_factory=dict)

    def add(self, keys: Sequence[Key], contents: Mapping[Key, PassageContent]) -> None:
        """Score the passages of `keys`; damaged ones are left out, with a warning."""
        index, request = self.query.index, self.request
        sound_keys = [key for key in keys if not contents[key].fault]
        stored = self.backend.read_passages(index, request, sound_keys)
        scored, warnings = candidates.score_passages(index, request, stored)
        self.warnings += warnings
        fused = candidates.fuse(
            scored, request, self.query.fusion, self.query.alpha, self.calibration
        )
        for passage in fused:
            self._add_passage(passage, contents[passage.stored.key])
        for key, places in self.backend.find_highlights(index, request, sound_keys).items():
            start = contents[key].start
            self.highlights |= {(start + first, start + last) for first, last in places}

    def _add_passage(self, passage: ScoredPassage, content: PassageContent) -> None:
        """Record the scores of a passage, of its best spans, and of its words."""
        bm25_part, spans_part = passage.parts
        self.passages.append(
            PassageScores(
                passage=passage.stored.ordinal,
                start=content.start,
                end=content.start + len(content.text),
                score=passage.score,
                bm25=passage.stored.bm25,
                cosine=passage.cosine,
                prior=passage.prior,
                bm25_part=bm25_part,
                spans_part=spans_part,
            )
        )
        tokens, layout = passage.stored.tokens, parse_layout(content)
        passage_spans = PassageSpans.from_passage(
            content.start, tokens, passage.cosines, passage.priors
        )
        for place in span_search.best_places([passage_spans], self.query.spans):
            turn = find_turn(content, layout, place.start, place.end)
            if turn is not None:
                score = place.cosine + place.prior
                self._spans.append((score, build_span(content, turn, place)))
        scores = score_words(passage_spans.scores, *spans.bounds(tokens.counts), len(tokens.words))
        places = tokens.words + content.start
        parts = self.calibration.span(scores.astype(np.float64))
        for start, end, part in zip(*places.T.tolist(), parts.tolist(), strict=True):
            # pieces of a long turn overlap: the last words of one also belong to the next
            self._words[start, end] = max(part, self._words.get((start, end), 0.0))

    def choose_spans(self) -> list[Span]:
        """Return the best non-overlapping spans of the document, best first.

        With a prior, weak matches are left out, as in a hit.
        """
        ranked = sorted(self._spans, key=lambda item: (-item[0], item[1].start))
        scores = np.array([score for score, _ in ranked], np.float32)
        bounds = np.array([(span.start, span.end) for _, span in ranked]).reshape(-1, 2)
        best = spans.best(scores, bounds[:, 0], bounds[:, 1], self.query.spans)
        chosen_spans = [ranked[number][1] for number in best]
        return list(leave_out_weak_spans(chosen_spans)) if self.request.prior else chosen_spans

    def list_words(self) -> list[tuple[int, int, float]]:
        """Return start, end and score of each word, in order."""
        return [(start, end, round(part, 4)) for (start, end), part in sorted(self._words.items())]


def score_words(scores: Floats, first: Any, last: Any, words: int) -> Floats:
    """Return the score of the best span that contains each of the `words`, float32 ``[words]``.

    `scores` are of all spans, float32 ``[spans]``; `first` and `last` are their words.
    """
    best = np.full(words, -np.inf, np.float32)
    for step in range(spans.MAX_WORDS):
        covering = last - first >= step
        np.maximum.at(best, first[covering] + step, scores[covering])
    return np.maximum(best, -1e6)
