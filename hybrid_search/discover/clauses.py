"""Choose spans of a block of passages: its clauses, or what in them is nearest to a phrase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Key, PassageContent, ScannedPassage
from hybrid_search.discover.types import ChosenSpans, Occurrence
from hybrid_search.errors import ModelError
from hybrid_search.search.span_content import find_turn, parse_layout, parse_metadata
from hybrid_search.text import spans, word_codes
from hybrid_search.text.filters import Condition, matches_condition
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Floats
from hybrid_search.topics.blocks import JoinedPassages, join_passages
from hybrid_search.topics.match_builder import fetch_sound
from hybrid_search.topics.mention_choice import choose_rows
from hybrid_search.topics.types import Candidates, Integers, ScannedBlock


def require_prior(prior: SpanPrior | None, model: str) -> SpanPrior:
    """Return the prior. Raises ModelError if the model has none."""
    if prior is None:
        raise ModelError(
            f"model {model!r} does not tell where a clause ends, so nothing can be discovered "
            "with it: ingest with the shipped model, or with one that has a span prior"
        )
    return prior


def find_clauses(
    block: ScannedBlock, dimension: int, prior: SpanPrior, least_words: int
) -> ChosenSpans:
    """Return each clause of a block: of all spans inside it the one with the largest prior.

    That is the whole clause, or the best part of one that is longer than a span can be. Clauses
    whose best span has fewer than `least_words` are left out.
    """
    joined, damaged = join_passages(block, dimension, prior)
    if joined is None or joined.priors is None:
        return ChosenSpans.empty(dimension, damaged)
    first, last = spans.bounds(joined.tokens.counts)
    clauses = _number_clauses(joined)
    inside = np.flatnonzero(clauses[first] == clauses[last])
    order = inside[np.lexsort((-joined.priors[inside], clauses[first[inside]]))]
    best = order[np.diff(clauses[first[order]], prepend=-1) != 0]
    best = best[last[best] - first[best] + 1 >= least_words]
    no_cosines = np.zeros(len(best), dtype=np.float32)
    return _build(joined, first[best], last[best], joined.priors[best], no_cosines, damaged)


def find_similar(
    block: ScannedBlock, phrase: Floats, prior: SpanPrior | None, least_cosine: float
) -> ChosenSpans:
    """Return the best span of each clause of a block among those near a phrase, exactly.

    Spans are chosen as mining chooses them: by cosine and prior, at most one for a clause. `phrase`
    is a unit vector, float32 ``[dimension]``; spans with a smaller cosine than `least_cosine`,
    -1..1, are not looked at.
    """
    joined, damaged = join_passages(block, len(phrase), prior)
    if joined is None:
        return ChosenSpans.empty(len(phrase), damaged)
    cosines = word_codes.cosines(phrase, joined.tokens)
    near = np.flatnonzero(cosines >= least_cosine)
    first, last = (bounds[near] for bounds in spans.bounds(joined.tokens.counts))
    priors = np.zeros(len(near), np.float32) if joined.priors is None else joined.priors[near]
    rows = choose_rows(_as_candidates(joined, first, last, cosines[near], priors))
    return _build(joined, first[rows], last[rows], priors[rows], cosines[near][rows], damaged)


def _number_clauses(joined: JoinedPassages) -> Integers:
    """Return the number of each word's clause in the block, int64 ``[words]``."""
    is_first = np.diff(joined.owners, prepend=-1) != 0
    is_first |= np.diff(joined.clause_starts, prepend=-1) != 0
    numbers: Integers = np.cumsum(is_first)
    return numbers


def _as_candidates(
    joined: JoinedPassages, first: Integers, last: Integers, cosines: Floats, priors: Floats
) -> Candidates:
    """Return spans as candidates of one topic, each passage a document of its own."""
    owners, same = joined.owners[first], np.zeros(len(first), dtype=np.int64)
    scores, starts, ends = cosines + priors, joined.starts[first], joined.ends[last]
    clauses = joined.clause_starts[first], joined.clause_ends[last]
    return Candidates(owners, owners, same, same, cosines, scores, starts, ends, *clauses)


def _build(
    joined: JoinedPassages,
    first: Integers,
    last: Integers,
    priors: Floats,
    cosines: Floats,
    damaged: int,
) -> ChosenSpans:
    """Return the spans from word `first` to word `last`, with their vectors."""
    owners, starts, ends = joined.owners[first], joined.starts[first], joined.ends[last]
    vectors = _pool(joined, first, last)
    return ChosenSpans(owners, starts, ends, priors, cosines, vectors, damaged)


def _pool(joined: JoinedPassages, first: Integers, last: Integers) -> Floats:
    """Return the unit vector of each span, the mean of its tokens; zeros if it has none."""
    vectors, rows = word_codes.vectors(joined.tokens), joined.tokens.rows
    vectors = np.concatenate([vectors, np.zeros_like(vectors[:1])])
    # the sums of the rows between two places: every second one is what lies between two spans
    places = np.stack([rows[first], rows[last] + 1], axis=1).ravel()
    sums = np.add.reduceat(vectors, places)[::2] if len(places) else vectors[:0]
    return normalize_rows(sums)


def normalize_rows(vectors: Floats) -> Floats:
    """Return the rows with length 1, float32; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Floats = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return units


@dataclass(frozen=True, slots=True, eq=False)
class SpanReader:
    """Reads the spans of one index that some speakers say, in documents that meet the conditions.

    `speakers` is empty for all, and `damaged` has the keys of damaged passages, which are left out.
    """

    backend: Backend
    index: str
    speakers: frozenset[str] = frozenset()
    conditions: Sequence[Condition] = ()
    damaged: set[Key] = field(default_factory=set)

    def read(
        self, passages: Sequence[ScannedPassage], spans: ChosenSpans
    ) -> Iterator[tuple[int, Occurrence]]:
        """Yield the row of each span that meets the conditions, with its words and place.

        The spans are in these passages, passage by passage; those in one that was deleted since are
        left out.
        """
        rows: dict[int, list[int]] = {}
        for row, number in enumerate(spans.passages.tolist()):
            rows.setdefault(number, []).append(row)
        wanted = [passages[number] for number in rows]
        contents = fetch_sound(self.backend, self.index, wanted, self.damaged)
        for passage, own_rows in zip(wanted, rows.values(), strict=True):
            content = contents.get(passage.key)
            if content and self._is_wanted(passage.document_id, content):
                yield from self._read_passage(passage, content, spans, own_rows)

    def _read_passage(
        self,
        passage: ScannedPassage,
        content: PassageContent,
        spans: ChosenSpans,
        rows: Sequence[int],
    ) -> Iterator[tuple[int, Occurrence]]:
        layout = parse_layout(content)
        for row in rows:
            start, end = int(spans.starts[row]), int(spans.ends[row])
            turn = find_turn(content, layout, start, end)
            if turn is None:
                self.damaged.add(passage.key)
                return
            speaker = turn.get("speaker")
            if not self.speakers or speaker in self.speakers:
                text = content.text[start - content.start : end - content.start]
                place = (passage.document_id, turn["turn"], speaker, start, end)
                yield row, Occurrence(*place, text, float(spans.cosines[row]))

    def _is_wanted(self, document_id: str, content: PassageContent) -> bool:
        if not self.conditions:
            return True
        metadata = parse_metadata(self.index, document_id, content)
        return all(matches_condition(row, document_id, metadata) for row in self.conditions)
