"""One frozen type for each stage, in the order in which a text passes through them.

Read -> `Document` of `Turn`s -> split -> `Passage` of `Part`s -> encode -> `Encoding` -> shape ->
`TokenCodes`, `Entry` -> write. Ask -> `Request` -> `Candidate` -> complete -> `Scored` -> fuse ->
group -> `Hit` with its `Span`s, in a `Result` (``results.py``).

All offsets are code points of the document's text: ``document.text[start:end]`` is what they name.
"""

from __future__ import annotations

from collections.abc import Mapping
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


@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker said: ``document.text[start:start + len(text)] == text``.

    Times are milliseconds from the start of the call.
    """

    text: str
    start: int = 0
    speaker: str | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    extra: Metadata = field(default_factory=dict)

    @property
    def end(self) -> int:
        """Where the turn ends in the document's text."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Document:
    """A call, ticket or text.

    A document given as ``text`` has one turn; given as ``turns`` its text is theirs, joined by
    newlines.
    """

    id: str
    text: str
    turns: tuple[Turn, ...]
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The share of one turn in a passage: ``document.text[start:end]``.

    The encoder sees it from `window_start` on, for context.

    `words` is int32 ``[n, 2]``, start and end in the document; spans start in the first `core` of
    them, the others are only there for spans to end in.
    """

    turn: int
    start: int
    end: int
    window_start: int
    words: Ints
    core: int


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """What is retrieved: some whole turns, or a piece of a long one.

    ``document.text[start:end]`` is its text.
    """

    ordinal: int
    start: int
    end: int
    parts: tuple[Part, ...]

    @property
    def words(self) -> int:
        """How many words its parts have together."""
        return sum(len(part.words) for part in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """An encoded text: `vectors` float32 ``[tokens, dimension]`` and `offsets` int32 ``[tokens,
    2]``, special tokens left out.
    """

    vectors: Floats
    offsets: Ints


@dataclass(frozen=True, slots=True, eq=False)
class TokenCodes:
    """All that the exact best spans of a passage need: O(tokens) bytes, whatever the number of
    spans.

    `words` int32 ``[words, 4]``: start and end (code points from the passage's start), first token,
    token after the last. `counts` uint8 ``[words]``: how many spans start at the word (1 word, 2
    words, ...); 0 for words that belong to the next piece. `codes` int8 ``[tokens, dimension]`` and
    `scales` float32 ``[tokens]``: token vector = code * scale. `inverse_norms` float16
    ``[counts.sum()]``: 1 / |sum of the span's token vectors|, word by word and, for a word, by
    length.
    """

    words: Ints
    counts: Bytes
    codes: Codes
    scales: Floats
    inverse_norms: Halves


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One passage, ready to be written, with its number of covering spans.

    Entries of a document follow each other; `last` ends it.
    """

    document: Document
    source_hash: str
    passages: int
    passage: Passage
    tokens: TokenCodes
    spans: int

    @property
    def is_last(self) -> bool:
        """Whether this is the document's last passage."""
        return self.passage.ordinal == self.passages - 1

    @property
    def text(self) -> str:
        """The passage's text."""
        return self.document.text[self.passage.start : self.passage.end]
