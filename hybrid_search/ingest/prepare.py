"""The read stage: from lines to passages of valid documents that are new or changed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from hybrid_search.backends.types import IndexSpec
from hybrid_search.errors import InputError
from hybrid_search.ingest import document_parser
from hybrid_search.ingest.checkpoint import SourceHashLookup
from hybrid_search.ingest.document_parser import is_looked_through
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.redactions import Recogniser
from hybrid_search.ingest.rejects import Rejects
from hybrid_search.ingest.seen_ids import SeenIds
from hybrid_search.ingest.sources.python_objects import SOURCE, put_in_python
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import ParsedDocument, PreparedPassage, SourceLine
from hybrid_search.text import passages
from hybrid_search.text.filters import matches_where
from hybrid_search.text.languages import FIELD as LANGUAGE
from hybrid_search.text.languages import iterate_values

_log = logging.getLogger(__name__)

LOOKUP_DOCUMENTS = 200
LOOKUP_BYTES = 1_000_000
"""Documents are looked up together, to skip the unchanged ones: up to so many, or so many bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Preparation:
    """The preparation of documents: parse, select, look up and split."""

    spec: IndexSpec
    look_up_hashes: SourceHashLookup
    rejects: Rejects
    seen_ids: SeenIds
    summary: Summary
    options: IngestOptions
    recogniser: Recogniser | None = None

    def blocks(self, lines: Iterable[SourceLine], size: int) -> Iterator[list[PreparedPassage]]:
        """Yield blocks of at most `size` passages."""
        prepared_passages = self._passages(lines)
        return passages.split_batches(prepared_passages, size, attrgetter("passage"))

    def _passages(self, lines: Iterable[SourceLine]) -> Iterator[PreparedPassage]:
        for group in self._group_documents(lines):
            for parsed in self._select_changed(group):
                with self.summary.time_stage("read"):
                    split_passages = list(passages.split(parsed.document))
                for passage in split_passages:
                    yield PreparedPassage(parsed, len(split_passages), passage)

    def _group_documents(self, lines: Iterable[SourceLine]) -> Iterator[list[ParsedDocument]]:
        """Yield valid documents in groups for one lookup each."""
        group: list[ParsedDocument] = []
        group_bytes = 0
        for line in lines:
            if parsed := self._parse_line(line):
                group.append(parsed)
                group_bytes += len(line.data)
            if len(group) >= LOOKUP_DOCUMENTS or group_bytes >= LOOKUP_BYTES:
                yield group
                group, group_bytes = [], 0
        yield group

    def _parse_line(self, line: SourceLine) -> ParsedDocument | None:
        with self.summary.time_stage("read"):
            self.summary.bytes += len(line.data)
            if not line.fault and not line.data.strip():
                return None
            if not self.options.shard.owns(line):
                self.summary.others += 1
                return None
            self.summary.read += 1
            try:
                return self._parse_document(line)
            except InputError as error:
                document_id = None if line.fault else document_parser.find_valid_id(line.data)
                self.rejects.add(line, str(error), error.detail, document_id)
                return None

    def _parse_document(self, line: SourceLine) -> ParsedDocument | None:
        if line.fault:
            raise InputError(line.fault, line.detail)
        cleaning, language = self.options.cleaning, self.options.language
        document, canonical = document_parser.parse(line.data, cleaning, language, self.recogniser)
        if not matches_where(self.options.where or {}, document.id, document.metadata):
            self.summary.excluded += 1
            return None
        for value in filter(None, iterate_values(document.metadata.get(LANGUAGE))):
            self.summary.languages[str(value)] += 1
        source_hash = document_parser.source_hash(canonical, self.spec)
        place = f"{line.source}:{line.number}"
        earlier = self.seen_ids.add(document.id, place, source_hash)
        self.summary.duplicates += earlier is not None
        if earlier and earlier.digest != source_hash:
            level = logging.INFO if self.summary.replaced else logging.WARNING
            is_same_source = earlier.place.rpartition(":")[0] == line.source
            hint = "; --rows turn makes one call of them" if is_same_source else ""
            hint = put_in_python(hint) if line.source == SOURCE else hint
            message = "id %r is at %s and again at %s: the last one wins%s"
            _log.log(level, message, document.id, earlier.place, place, hint)
            self.summary.replaced += 1
        return ParsedDocument(line, document, source_hash, earlier is not None)

    def _select_changed(self, group: Sequence[ParsedDocument]) -> Iterator[ParsedDocument]:
        with self.summary.time_stage("read"):
            indexed_hashes = self.look_up_hashes([parsed.document.id for parsed in group])
        for parsed in group:
            indexed_hash = indexed_hashes.get(parsed.document.id, "")
            if is_looked_through(indexed_hash) and not is_looked_through(parsed.source_hash):
                self.summary.skipped += 1
                self.summary.unredacted += 1
            elif parsed.is_repeated or indexed_hash != parsed.source_hash:
                yield parsed
            else:
                self.summary.skipped += 1
