"""Lines to the passages of those documents that are good, and new or changed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hybrid_search import passages
from hybrid_search.backends.base import IndexSpec
from hybrid_search.errors import InputError
from hybrid_search.filters import selects
from hybrid_search.ingest import documents
from hybrid_search.ingest.rejects import Rejects
from hybrid_search.ingest.seen import Seen
from hybrid_search.ingest.shards import WHOLE, Shard
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.summary import Summary
from hybrid_search.types import Document, Passage

_log = logging.getLogger(__name__)

LOOKUP_DOCUMENTS = 200
LOOKUP_BYTES = 1_000_000
"""Documents are looked up together, to be skipped if they are unchanged, until so many, or so much, are held."""

Known = Callable[[Sequence[str]], dict[str, str]]


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """A good document. `again` says that its id was met before in this run: it must not be skipped, whatever the index holds by now."""

    line: Line
    document: Document
    source_hash: str
    again: bool


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A passage on its way to the encoder, one of `passages` of its document."""

    parsed: Parsed
    passages: int
    passage: Passage

    @property
    def last(self) -> bool:
        """Whether this is the document's last passage."""
        return self.passage.ordinal == self.passages - 1


@dataclass(frozen=True, slots=True, eq=False)
class Preparation:
    """Reads, validates, looks up and cuts what is `shard`'s. Counts into `summary`, sends what is refused to `rejects`."""

    spec: IndexSpec
    known: Known
    rejects: Rejects
    seen: Seen
    summary: Summary
    where: Mapping[str, Any] = field(default_factory=dict)
    """What the metadata of a document must have (`hybrid_search.filters`); the others are passed over."""
    shard: Shard = WHOLE

    def blocks(self, lines: Iterable[Line], size: int) -> Iterator[list[Prepared]]:
        """Blocks of `size` passages."""
        block: list[Prepared] = []
        for prepared in self._passages(lines):
            block.append(prepared)
            if len(block) == size:
                yield block
                block = []
        if block:
            yield block

    def _passages(self, lines: Iterable[Line]) -> Iterator[Prepared]:
        for group in self._groups(lines):
            for parsed in self._changed(group):
                with self.summary.timed("read"):
                    cut = list(passages.split(parsed.document))
                yield from (Prepared(parsed, len(cut), passage) for passage in cut)

    def _groups(self, lines: Iterable[Line]) -> Iterator[list[Parsed]]:
        """Good documents, as many together as are looked up at once."""
        group: list[Parsed] = []
        held = 0
        for line in lines:
            if parsed := self._parsed(line):
                group.append(parsed)
                held += len(line.data)
            if len(group) >= LOOKUP_DOCUMENTS or held >= LOOKUP_BYTES:
                yield group
                group, held = [], 0
        yield group

    def _parsed(self, line: Line) -> Parsed | None:
        with self.summary.timed("read"):
            self.summary.bytes += len(line.data)
            if not line.fault and not line.data.strip():
                return None
            if not self.shard.owns(line):
                self.summary.others += 1
                return None
            self.summary.read += 1
            try:
                return self._document(line)
            except InputError as error:
                self.rejects.add(line, str(error))
                return None

    def _document(self, line: Line) -> Parsed | None:
        if line.fault:
            raise InputError(line.fault)
        document, canonical = documents.parse(line.data)
        if not selects(self.where, document.id, document.metadata):
            self.summary.excluded += 1
            return None
        before = self.seen.add(document.id, f"{line.source}:{line.number}")
        if before:
            self.summary.duplicates += 1
            _log.warning("id %r is at %s and again at %s:%d: the last one wins", document.id, before, line.source, line.number)
        return Parsed(line, document, documents.source_hash(canonical, self.spec), before is not None)

    def _changed(self, group: Sequence[Parsed]) -> Iterator[Parsed]:
        with self.summary.timed("read"):
            held = self.known([each.document.id for each in group])
        for each in group:
            if each.again or held.get(each.document.id) != each.source_hash:
                yield each
            else:
                self.summary.skipped += 1
