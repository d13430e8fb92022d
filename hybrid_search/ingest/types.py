"""One frozen type for each stage of ingest, in the order in which a document passes through them."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid_search.text.types import Document, Passage


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line or row of a source, numbered from 1: the JSON of a document.

    `fault` says why it could not be read, if so.
    """

    source: str
    number: int
    data: bytes
    fault: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ParsedDocument:
    """A good document.

    `again` says that its id was met before in this run: it must not be skipped, whatever the index
    holds by now.
    """

    line: SourceLine
    document: Document
    source_hash: str
    is_repeated: bool


@dataclass(frozen=True, slots=True, eq=False)
class PreparedPassage:
    """A passage on its way to the encoder, one of `passages` of its document."""

    parsed: ParsedDocument
    passages: int
    passage: Passage

    @property
    def is_last(self) -> bool:
        """Whether this is the document's last passage."""
        return self.passage.ordinal == self.passages - 1
