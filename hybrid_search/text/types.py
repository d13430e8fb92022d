"""The frozen types of this package, and an overview of all stages of the data.

Ingest: `SourceLine` -> `Document` of `Turn`s, with its hash a `ParsedDocument` -> split into
`Passage`s of `Part`s, each a `PreparedPassage` -> encoded to `Encoding`s -> packed into
`WordCodes` -> `Entry` -> written.

Query: `Query` -> a `Request` per phrase -> `FoundPassages`, with `StoredPassage`s ->
`ScoredPassage` -> grouped by document, with `PassageContent` -> `Hit` with its `Span`s -> `Result`.

`SourceLine`, `ParsedDocument` and `PreparedPassage` live in `hybrid_search.ingest.types`, `Request`
to `StoredPassage` and `PassageContent` in `hybrid_search.backends.types`, and `Query`,
`ScoredPassage`, `Hit`, `Span` and `Result` in `hybrid_search.search`. The rest is here.

All offsets count code points of the document's text: ``document.text[start:end]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Halves = NDArray[np.float16]
Ints = NDArray[np.int32]
Codes = NDArray[np.int8]
Bytes = NDArray[np.uint8]

Metadata = Mapping[str, Any]

WordTime = tuple[int, int, int, int]
"""The time of a word: its start and end in the turn's text, then in milliseconds."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The words of one speaker: ``document.text[start:start + len(text)] == text``.

    Times are milliseconds from the start of the call. `word_times` has the known times of its
    words, in order, without the punctuation around a word.
    """

    text: str
    start: int = 0
    speaker: str | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    extra: Metadata = field(default_factory=dict)
    word_times: tuple[WordTime, ...] = ()

    @property
    def end(self) -> int:
        """The end of the turn in the document's text."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Document:
    """A call, ticket or text.

    A document made from ``text`` has one turn; the text of one made from ``turns`` is their texts,
    joined by newlines.
    """

    id: str
    text: str
    turns: tuple[Turn, ...]
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The share of one turn in a passage: ``document.text[start:end]``.

    The encoder reads it from `window_start`, for context.

    `words` is int32 ``[words, 2]``: start and end of each in the document. Spans start only in the
    first `core` words; spans may also end in the words after them. No span crosses the start of a
    word of `breaks`, such as the first word of a line that names its speaker.
    """

    turn: int
    start: int
    end: int
    window_start: int
    words: Ints
    core: int
    breaks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """The unit of retrieval: several whole turns, or a piece of a long turn.

    Its text is ``document.text[start:end]``.
    """

    ordinal: int
    start: int
    end: int
    parts: tuple[Part, ...]

    @property
    def words(self) -> int:
        """Number of words in all its parts."""
        return sum(len(part.words) for part in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """The token vectors of one encoded text, without special tokens.

    `vectors` is float32 ``[tokens, dimension]``, `offsets` int32 ``[tokens, 2]``: the start and end
    of each token in the text, in code points.
    """

    vectors: Floats
    offsets: Ints


@dataclass(frozen=True, slots=True, eq=False)
class PassageTokens:
    """The token vectors of a passage, of mean length 1, before they are rounded.

    Attributes:
        vectors: float32 ``[tokens, dimension]``.
        words: int32 ``[words, 4]``: start and end (code points from the passage's start), first
            token, token after the last.
        counts: uint8 ``[words]``: number of spans that start at the word, see `WordCodes`.
    """

    vectors: Floats
    words: Ints
    counts: Bytes


@dataclass(frozen=True, slots=True, eq=False)
class Codebook:
    """The centroids of a model's word vectors, in one of its dimensions.

    Attributes:
        centroids: float32 ``[centroids, dimension]``: turned unit vectors; a single one of zeros if
            the model has no centroids.
        identity: A checksum of the centroids in full, by which stored codes name their codebook.
        packed: The first numbers of the centroids, not turned, as numkong multiplies them.
    """

    centroids: Floats
    identity: int
    packed: Any

    @property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        return int(self.centroids.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class WordCodes:
    """The data needed to score every span of a passage: a row for each word, a byte for each span.

    A word's vector, the sum of those of its tokens, is ``length * (a * centroid + b * residual)``.
    Tokens between two words of a turn, such as punctuation, have a row of their own.

    Attributes:
        codebook: The centroids, and the dimension of the vectors.
        bits: The bits of one number of a residual.
        words: int32 ``[words, 2]``: start and end, in code points from the passage's start.
        counts: uint8 ``[words]``: number of spans that start at the word (of 1 word, 2 words, ...);
            0 for words that belong to the next piece.
        rows: intp ``[words]``: the row of each word.
        centroids: uint16 ``[rows]``: the number of the nearest centroid.
        centroid_parts: uint8 ``[rows]``: a, in 255ths.
        residual_parts: uint8 ``[rows]``: b, in 128ths.
        lengths: float16 ``[rows]``: the lengths of the vectors, 0 for a word without a token.
        residuals: uint8 ``[rows, bytes]``, packed by `residual_codes`.
        norms: uint8 ``[counts.sum()]``: the length of the span's vector, in 250ths of the sum of
            its rows' lengths; word by word, and for each from the shortest span to the longest.
        boundaries: uint8 ``[words]``: the probability, in 255ths, that a clause ends before the
            word; None if the model does not predict boundaries.
        turns: The first word and the speaker of each turn. Not stored with the codes, and set only
            if a request filters by speaker.
    """

    codebook: Codebook
    bits: int
    words: Ints
    counts: Bytes
    rows: NDArray[np.intp]
    centroids: NDArray[np.uint16]
    centroid_parts: Bytes
    residual_parts: Bytes
    lengths: Halves
    residuals: Bytes
    norms: Bytes
    boundaries: Bytes | None = None
    turns: Sequence[tuple[int, str | None]] = ()

    @property
    def dimension(self) -> int:
        """The dimension of the vectors."""
        return self.codebook.dimension


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A passage ready to be written, and its number of covering windows (`spans`).

    The entries of a document follow one another; `is_last` marks the end. `passages` is the number
    of passages of the document, and `source_hash` identifies its version.
    """

    document: Document
    source_hash: str
    passages: int
    passage: Passage
    tokens: WordCodes
    spans: int

    @property
    def is_last(self) -> bool:
        """True for the document's last passage."""
        return self.passage.ordinal == self.passages - 1

    @property
    def text(self) -> str:
        """The passage's text."""
        return self.document.text[self.passage.start : self.passage.end]

    @property
    def turns(self) -> list[tuple[int, str | None]]:
        """The first word and the speaker of each turn of the passage."""
        return list_turns(self.document, self.passage)

    def is_said_by(self, speakers: Sequence[str]) -> bool:
        """Return whether one of `speakers` has a turn here; True if `speakers` is empty."""
        return not speakers or any(speaker in speakers for _, speaker in self.turns)


def list_turns(document: Document, passage: Passage) -> list[tuple[int, str | None]]:
    """Return the first word and the speaker of each turn of a passage, see `WordCodes.turns`."""
    turns: list[tuple[int, str | None]] = []
    words = 0
    for part in passage.parts:
        turns.append((words, document.turns[part.turn].speaker))
        words += len(part.words)
    return turns
