"""The types that pass between the stages of ingest, in the order of the stages."""

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
    """The words or values at fault; nothing else may quote the line."""


@dataclass(slots=True, eq=False)
class ParsedDocument:
    """A valid document with its source line, and what the write stage did with it so far."""

    line: SourceLine
    document: Document
    source_hash: str
    is_repeated: bool
    """Whether this run has seen the id before; then the index may lack the version before it."""
    passages: int = 0
    """How many passages it is split into."""
    is_refused: bool = False
    """Whether the encoder or the store refused it; its further passages are not written."""
    is_whole: bool = False
    """Whether its last passage is written."""
    written_passages: int = 0
    """Passages written so far, counted in the summary once the document is complete."""
    written_windows: int = 0
    """Covering windows of these passages, counted as spans."""


PreparedPassage = tuple[ParsedDocument, Passage]
"""A passage ready for the encoder, with its document."""

EncodedPassage = tuple[ParsedDocument, Passage, list[EncodingOrError]]
"""The same with the encoding or error of each of the passage's parts."""

ShapedPassage = tuple[ParsedDocument, Passage, Entry | InputError]
"""The same with the passage's entry for the writer, or with the encoder's error."""
