"""The frozen types that pass between the stages of ingest, in the order of the stages."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid_search.errors import InputError
from hybrid_search.text.types import Document, Encoding, Entry, Passage

EncodingOrError = Encoding | InputError
"""The result of the encoder for a text: its encoding, or why it cannot be encoded."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line or row of a source, numbered from 1, with the JSON of a document."""

    source: str
    number: int
    data: bytes
    fault: str | None = None
    """Why it could not be read, if so."""
    detail: str = ""
    """What was found; nothing else may quote the line."""


@dataclass(frozen=True, slots=True, eq=False)
class ParsedDocument:
    """A valid document with its source line."""

    line: SourceLine
    document: Document
    source_hash: str
    is_repeated: bool
    """Whether this run has seen the id before; then the index may lack the version before it."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedPassage:
    """A passage ready for the encoder, one of `passages` of its document."""

    parsed: ParsedDocument
    passages: int
    passage: Passage

    @property
    def is_last(self) -> bool:
        """Return whether this is the document's last passage."""
        return self.passage.ordinal == self.passages - 1


EncodedPassage = tuple[PreparedPassage, list[EncodingOrError]]
"""A passage with the encoding or error of each of its parts."""

ShapedPassage = tuple[PreparedPassage, Entry | InputError]
"""A passage with its entry for the writer, or with the encoder's error."""
