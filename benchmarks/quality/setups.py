"""The set-ups of the SLICE paper's table: which texts a system is shown, and which spans may answer.

Each takes the queries and the items beside them, and gives an `Answer` for each: a cosine (or the score of a system that has no vectors), and the
place of the span that has it, where the set-up looks for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Protocol

import numpy as np

from benchmarks.quality.sentences import sentences
from benchmarks.quality.systems.base import Range, Scorer, SpanEncoder, TextEncoder
from benchmarks.quality.vectors import TEXTS, Spans
from hybrid_search import spans
from hybrid_search.encoder import Encoder
from hybrid_search.phrase import Piece, best_places
from hybrid_search.types import Floats, Ints
from hybrid_search.words import words

LONGEST = (5, 10, 15, 20, 25, 30, 35)
"""The longest spans, in words, of the paper's sweep."""

CONTEXTS = 128
"""Contexts that are encoded together: 30 MB of token vectors at 384 dimensions."""


class Item(Protocol):
    """A text to look for spans in, and the span that people judged."""

    @property
    def context(self) -> str: ...

    @property
    def target(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What a set-up says of an item."""

    score: float
    place: Range | None = None


Setup = Callable[[Any, Sequence[str], Sequence[Item]], list[Answer]]
"""From a system that is able to it, the queries, and the items beside them."""


def text_scores(system: Scorer, queries: Sequence[str], items: Sequence[Item]) -> list[Answer]:
    """The score of the whole context, of a system without vectors."""
    return [Answer(float(each)) for each in system.scores(queries, [item.context for item in items])]


def full_context(system: TextEncoder, queries: Sequence[str], items: Sequence[Item]) -> list[Answer]:
    """One vector of the whole context."""
    return _cosines(system, queries, [item.context for item in items])


def target_alone(system: TextEncoder, queries: Sequence[str], items: Sequence[Item]) -> list[Answer]:
    """The gold target by itself: what finding the right span and reading it without its neighbours would give."""
    return _cosines(system, queries, [item.target for item in items])


def _cosines(system: TextEncoder, queries: Sequence[str], texts: Sequence[str]) -> list[Answer]:
    return [Answer(float(each)) for each in np.einsum("ij,ij->i", system.alone(queries), system.alone(texts))]


def single_pass(system: SpanEncoder, queries: Sequence[str], items: Sequence[Item]) -> list[Answer]:
    """Every span of the context, encoded in one pass."""
    return [_best(pieces) for pieces in _pieces(system, system.alone(queries), items, _whole)]


def sentence_wise(system: SpanEncoder, queries: Sequence[str], items: Sequence[Item]) -> list[Answer]:
    """Each sentence of the context by itself; spans lie inside a sentence."""
    return [_best(pieces) for pieces in _pieces(system, system.alone(queries), items, sentences)]


def sweep(system: SpanEncoder, queries: Sequence[str], items: Sequence[Item]) -> dict[int, list[Answer]]:
    """The single pass with each of the `LONGEST` spans."""
    found: dict[int, list[Answer]] = {longest: [] for longest in LONGEST}
    for [piece] in _pieces(system, system.alone(queries), items, _whole, max(LONGEST)):
        lengths = _lengths(piece)
        for longest, answers in found.items():
            short = lengths <= longest
            answers.append(_best([Piece(piece.cosines[short], piece.starts[short], piece.ends[short])]))
    return found


def per_ngram(most: int | None) -> Setup:
    """The encoder run once on each of the `most` best spans by the single pass, or on every span: what the paper's single pass is compared with."""
    return partial(_per_ngram, most=most)


def _per_ngram(system: TextEncoder, queries: Sequence[str], items: Sequence[Item], most: int | None) -> list[Answer]:
    answers: list[Answer] = []
    vectors, together = system.alone(queries), max(1, TEXTS // (most or TEXTS))
    picked = _picked(system, vectors, items, most)
    for start in range(0, len(items), together):
        places = list(islice(picked, together))
        found = system.alone([item.context[a:b] for item, some in zip(items[start:], places, strict=False) for a, b in some])
        split = np.split(found, np.cumsum([len(some) for some in places])[:-1])
        for query, some, held in zip(vectors[start:], places, split, strict=False):
            cosines = held @ query
            best = int(np.argmax(cosines))
            answers.append(Answer(float(cosines[best]), some[best]))
    return answers


def _picked(system: TextEncoder, queries: Floats, items: Sequence[Item], most: int | None) -> Iterator[list[Range]]:
    """The places to encode by themselves: the best by the single pass, or all."""
    if most is None:
        yield from (places(item.context) for item in items)
    elif isinstance(system, SpanEncoder):
        yield from (_head(pieces[0], most) for pieces in _pieces(system, queries, items, _whole))
    else:
        raise TypeError("only a system with spans can tell which are the best: encode every one (None)")


def _head(piece: Piece, most: int) -> list[Range]:
    order = np.argsort(-piece.cosines, kind="stable")[:most]
    return list(zip(piece.starts[order].tolist(), piece.ends[order].tolist(), strict=True))


def _whole(text: str) -> list[Range]:
    return [(0, len(text))]


def places(text: str, longest: int = spans.MAX_WORDS) -> list[Range]:
    """Start and end of every span of 1 to `longest` whole words, word by word and, of one word, from the shortest."""
    found = words(text)
    first, last = _bounds(len(found), longest)
    return list(zip(found[first, 0].tolist(), found[last, 1].tolist(), strict=True))


def _bounds(count: int, longest: int) -> tuple[spans.Index, spans.Index]:
    """First and last word of each span, intp ``[spans]``."""
    return spans.bounds(np.minimum(count - np.arange(count), longest).astype(np.uint8))


def _lengths(piece: Piece) -> Ints:
    """Words of each span: spans that begin at one word come one behind the other, each a word longer."""
    fresh = np.concatenate([[True], piece.starts[1:] != piece.starts[:-1]])
    numbers = np.arange(len(fresh))
    found: Ints = (numbers - np.maximum.accumulate(np.where(fresh, numbers, 0)) + 1).astype(np.int32)
    return found


def _pieces(
    system: SpanEncoder,
    queries: Floats,
    items: Sequence[Item],
    cut: Callable[[str], list[Range]],
    longest: int = spans.MAX_WORDS,
) -> Iterator[list[Piece]]:
    """All spans of each item's context, a piece for each of the texts that `cut` makes of it."""
    for start in range(0, len(items), CONTEXTS):
        some = items[start : start + CONTEXTS]
        ranges = [cut(item.context) for item in some]
        texts = [item.context[a:b] for item, found in zip(some, ranges, strict=True) for a, b in found]
        spread = [places(text, longest) for text in texts]
        encoded = zip(spread, system.inside(texts, spread), strict=True)
        for query, found in zip(queries[start:], ranges, strict=False):
            yield [_piece(query, begin, *next(encoded)) for begin, _ in found]


def _piece(query: Floats, begin: int, ranges: Sequence[Range], vectors: Floats) -> Piece:
    edges = np.array(ranges, dtype=np.int32).reshape(-1, 2) + np.int32(begin)
    return Piece(vectors @ query, edges[:, 0], edges[:, 1])


def _best(pieces: Sequence[Piece]) -> Answer:
    _, start, end, cosine = best_places(pieces, 1)[0]
    return Answer(cosine, (start, end))


def every_ngram(encoder: Encoder, items: Sequence[Item]) -> dict[str, float]:
    """What running the encoder on every span of 1 to 20 words would cost an item: texts, and tokens without the special ones."""
    texts = tokens = 0
    for start in range(0, len(items), CONTEXTS):
        contexts = [item.context for item in items[start : start + CONTEXTS]]
        for context, encoding in zip(contexts, encoder.encode(contexts), strict=True):
            found = Spans.of(context, encoding)
            texts, tokens = texts + len(found), tokens + found.length
    return {"tokens a row": round(tokens / len(items), 1), "texts a row": round(texts / len(items), 1)}
