"""An index that another program wrote on a server, as a source of documents."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from hybrid_search.backends.server.transport.base import Server
from hybrid_search.ingest.sources import server_filter, server_reader
from hybrid_search.ingest.sources.read_options import AS_IS, Columns, ReadOptions
from hybrid_search.ingest.sources.records import CONTENT, Record, build_record, find
from hybrid_search.ingest.sources.turn_rows import group_calls
from hybrid_search.ingest.types import SourceLine

ID = "_id"


@dataclass(frozen=True, slots=True)
class ForeignIndex:
    """An index to read, with read options and conditions on its documents.

    Without columns, the id of a document is its ``_id``, and its text is the field ``text``; a list
    there is taken as turns. All other fields are metadata. Fields called id, text or turns are
    renamed to ``source_id`` and so on, because a document has its own.
    """

    index: str
    options: ReadOptions = AS_IS
    where: Mapping[str, Any] = field(default_factory=dict)

    def lines(self, server: Server) -> Generator[SourceLine, None, None]:
        """Yield all documents as of one point in time.

        The server filters out only some of the documents that `where` excludes. Close the
        generator, or read it to the end; until then the server keeps the point in time. Raises
        IndexMissingError if there is no such index, ServerError if the server fails.
        """
        where = self._select_conditions()
        query = server_filter.build_query(
            where,
            server_reader.fetch_properties(server, self.index) if where else [],
            by_id=self._columns["id"] == ID,
        )
        with closing(server_reader.iterate_hits(server, self.index, query)) as hits:
            if self.options.rows == "turn":
                yield from self._group_lines(hits)
                return
            for number, hit in enumerate(hits, 1):
                yield self._build_line(hit, number)

    @property
    def _columns(self) -> dict[str, str]:
        named = {"id": ID, **self.options.columns.of}
        return named if {*CONTENT} & named.keys() else {**named, "text": "text"}

    def _select_conditions(self) -> Mapping[str, Any]:
        """Return the conditions that the server may apply, those on unchanged fields."""
        if self.options.rows == "turn":  # turn fields are not call fields
            return {}
        named = self.options.columns.of.keys() - {"id"}
        return {key: value for key, value in self.where.items() if key not in named}

    def _group_lines(self, hits: Iterator[Mapping[str, Any]]) -> Iterator[SourceLine]:
        records = (self._read_hit(hit, number) for number, hit in enumerate(hits, 1))
        options = replace(self.options, columns=Columns(self._columns))
        for record in group_calls(records, options):
            yield record.as_line(self.index)

    def _read_hit(self, hit: Mapping[str, Any], number: int) -> Record:
        fields = dict(hit.get("_source", {}))
        if self._columns["id"] == ID:
            fields[ID] = hit["_id"]
        return Record(number, fields=fields)

    def _build_line(self, hit: Mapping[str, Any], number: int) -> SourceLine:
        record = self._read_hit(hit, number)
        columns = self._columns
        if "turns" not in columns and isinstance(find(record.fields or {}, columns["text"]), list):
            columns["turns"] = columns.pop("text")
        options = replace(self.options, columns=Columns(columns))
        return build_record(record, options).as_line(f"{hit['_index']}/{hit['_id']}")
