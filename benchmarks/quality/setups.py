"""The set-ups of the SLICE paper's table: which texts a system reads, and which spans may answer.

Each takes the queries and the items beside them, and returns an `Answer` for each: a cosine (or the
score of a system without vectors), and the place of its span if the set-up looks for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Protocol

import numpy as np

from benchmarks.quality.sentences import sentences
from benchmarks.quality.systems import Range, Scorer, SpanEncoder, TextEncoder, TokenMeans
from benchmarks.quality.vectors import TEXTS, Spans
from hybrid_search.encoder import Encoder
from hybrid_search.encoder.base import span_prior
from hybrid_search.search.span_search import best_places, best_spans
from hybrid_search.search.types import PassageSpans
from hybrid_search.text import spans
from hybrid_search.text.types import Floats, Ints
from hybrid_search.text.words import words

LONGEST = (5, 10, 15, 20, 25, 30, 35)
"""The longest spans, in words, of the paper's sweep."""

CONTEXTS = 128
"""Contexts that are encoded together: 30 MB of token vectors at 384 dimensions."""


class Item(Protocol):
    """A text to find spans in, and the span that people judged."""

    @property
    def context(self) -> str:
        """The text to find spans in."""
        ...

    @property
    def target(self) -> str:
        """The span that people judged."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """The score of an item in a set-up, and the place of the span that has it."""

    score: float
    place: Range | None = None


Setup = Callable[[Any, Sequence[str], Sequence[Item]], list[Answer]]
"""From a system that supports it, the queries, and the items beside them, to an answer for each."""


def text_scores(system: Scorer, queries: Sequence[str], items: Sequence[Item]) -> list[Answer]:
    """Return the score of the whole context, by a system without vectors."""
    return [
        Answer(float(score)) for score in system.scores(queries, [item.context for item in items])
    ]


def full_context(
    system: TextEncoder, queries: Sequence[str], items: Sequence[Item]
) -> list[Answer]:
    """Return the cosine of one vector of the whole context."""
    return _cosines(system, queries, [item.context for item in items])


def target_alone(
    system: TextEncoder, queries: Sequence[str], items: Sequence[Item]
) -> list[Answer]:
    """Return the cosine of the gold target by itself.

    This is what finding the right span and reading it without its neighbours would score.
    """
    return _cosines(system, queries, [item.target for item in items])


def _cosines(system: TextEncoder, queries: Sequence[str], texts: Sequence[str]) -> list[Answer]:
    return [
        Answer(float(cosine))
        for cosine in np.einsum(
            "ij,ij->i", system.encode_texts(queries), system.encode_texts(texts)
        )
    ]


def single_pass(system: SpanEncoder, queries: Sequence[str], items: Sequence[Item]) -> list[Answer]:
    """Return the best of every span of the context, encoded in one pass."""
    return [
        _best_answer(pieces)
        for pieces in _pieces(system, system.encode_texts(queries), items, _full_range)
    ]


def by_score(system: TokenMeans, queries: Sequence[str], items: Sequence[Item]) -> list[Answer]:
    """Return the best span by the product's own score, cosine and prior, in one pass.

    The vectors are those of stored codes.
    """
    prior = span_prior(system.encoder)
    best = (
        best_spans(system.encoder, query, item.context, prior=prior)
        for query, item in zip(queries, items, strict=True)
    )
    return [Answer(span.cosine + span.prior, (span.start, span.end)) for [span] in best]


def sentence_wise(
    system: SpanEncoder, queries: Sequence[str], items: Sequence[Item]
) -> list[Answer]:
    """Return the best span inside a sentence, each sentence being encoded by itself."""
    return [
        _best_answer(pieces)
        for pieces in _pieces(system, system.encode_texts(queries), items, sentences)
    ]


def sweep(
    system: SpanEncoder, queries: Sequence[str], items: Sequence[Item]
) -> dict[int, list[Answer]]:
    """Return the single pass with each of the `LONGEST` spans."""
    answers_by_longest: dict[int, list[Answer]] = {longest: [] for longest in LONGEST}
    for [piece] in _pieces(system, system.encode_texts(queries), items, _full_range, max(LONGEST)):
        lengths = _span_lengths(piece)
        for longest, answers in answers_by_longest.items():
            short = lengths <= longest
            answers.append(
                _best_answer(
                    [PassageSpans(piece.cosines[short], piece.starts[short], piece.ends[short])]
                )
            )
    return answers_by_longest


def per_ngram(most: int | None) -> Setup:
    """Return the set-up that encodes spans one by one, the paper's rival of the single pass.

    Encoded are the `most` best spans by the single pass, or every span if None.
    """
    return partial(_per_ngram, most=most)


def _per_ngram(
    system: TextEncoder, queries: Sequence[str], items: Sequence[Item], most: int | None
) -> list[Answer]:
    answers: list[Answer] = []
    vectors, batch_size = system.encode_texts(queries), max(1, TEXTS // (most or TEXTS))
    picked = _pick_places(system, vectors, items, most)
    for start in range(0, len(items), batch_size):
        places = list(islice(picked, batch_size))
        span_vectors = system.encode_texts(
            [
                item.context[a:b]
                for item, item_places in zip(items[start:], places, strict=False)
                for a, b in item_places
            ]
        )
        split = np.split(span_vectors, np.cumsum([len(item_places) for item_places in places])[:-1])
        for query, item_places, item_vectors in zip(vectors[start:], places, split, strict=False):
            cosines = item_vectors @ query
            best = int(np.argmax(cosines))
            answers.append(Answer(float(cosines[best]), item_places[best]))
    return answers


def _pick_places(
    system: TextEncoder, queries: Floats, items: Sequence[Item], most: int | None
) -> Iterator[list[Range]]:
    """Yield the places to encode by themselves: the best by the single pass, or all."""
    if most is None:
        yield from (list_spans(item.context) for item in items)
    elif isinstance(system, SpanEncoder):
        yield from (
            _best_ranges(pieces[0], most) for pieces in _pieces(system, queries, items, _full_range)
        )
    else:
        raise TypeError("only a system with spans can pick the best ones: encode every span (None)")


def _best_ranges(piece: PassageSpans, most: int) -> list[Range]:
    order = np.argsort(-piece.cosines, kind="stable")[:most]
    return list(zip(piece.starts[order].tolist(), piece.ends[order].tolist(), strict=True))


def _full_range(text: str) -> list[Range]:
    return [(0, len(text))]


def list_spans(text: str, longest: int = spans.MAX_WORDS) -> list[Range]:
    """Return start and end of every span of 1 to `longest` whole words.

    Ordered by first word, then from the shortest.
    """
    word_places = words(text)
    first, last = _span_bounds(len(word_places), longest)
    return list(zip(word_places[first, 0].tolist(), word_places[last, 1].tolist(), strict=True))


def _span_bounds(count: int, longest: int) -> tuple[spans.Index, spans.Index]:
    """Return first and last word of each span, intp ``[spans]``."""
    return spans.bounds(np.minimum(count - np.arange(count), longest).astype(np.uint8))


def _span_lengths(piece: PassageSpans) -> Ints:
    """Return the words of each span.

    Spans that begin at the same word follow each other, each a word longer.
    """
    fresh = np.concatenate([[True], piece.starts[1:] != piece.starts[:-1]])
    numbers = np.arange(len(fresh))
    lengths: Ints = (numbers - np.maximum.accumulate(np.where(fresh, numbers, 0)) + 1).astype(
        np.int32
    )
    return lengths


def _pieces(
    system: SpanEncoder,
    queries: Floats,
    items: Sequence[Item],
    cut: Callable[[str], list[Range]],
    longest: int = spans.MAX_WORDS,
) -> Iterator[list[PassageSpans]]:
    """Yield all spans of each item's context, in a piece for each text that `cut` makes of it."""
    for start in range(0, len(items), CONTEXTS):
        batch = items[start : start + CONTEXTS]
        ranges = [cut(item.context) for item in batch]
        texts = [
            item.context[a:b]
            for item, item_ranges in zip(batch, ranges, strict=True)
            for a, b in item_ranges
        ]
        spread = [list_spans(text, longest) for text in texts]
        encoded = zip(spread, system.encode_spans(texts, spread), strict=True)
        for query, item_ranges in zip(queries[start:], ranges, strict=False):
            yield [_piece(query, begin, *next(encoded)) for begin, _ in item_ranges]


def _piece(query: Floats, begin: int, ranges: Sequence[Range], vectors: Floats) -> PassageSpans:
    edges = np.array(ranges, dtype=np.int32).reshape(-1, 2) + np.int32(begin)
    return PassageSpans(vectors @ query, edges[:, 0], edges[:, 1])


def _best_answer(pieces: Sequence[PassageSpans]) -> Answer:
    place = next(best_places(pieces, 1))
    return Answer(place.cosine, (place.start, place.end))


def cost_of_every_ngram(encoder: Encoder, items: Sequence[Item]) -> dict[str, float]:
    """Return what encoding every span of 1 to 20 words by itself would cost an item.

    Counted in texts, and in tokens without the special ones.
    """
    texts = tokens = 0
    for start in range(0, len(items), CONTEXTS):
        contexts = [item.context for item in items[start : start + CONTEXTS]]
        for context, encoding in zip(contexts, encoder.encode(contexts), strict=True):
            text_spans = Spans.from_encoding(context, encoding)
            texts, tokens = texts + len(text_spans), tokens + text_spans.length
    return {
        "tokens a row": round(tokens / len(items), 1),
        "texts a row": round(texts / len(items), 1),
    }
