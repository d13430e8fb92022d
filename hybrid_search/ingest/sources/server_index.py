"""An index that another program wrote on a server, as a source of documents."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.ingest.sources import server_reader
from hybrid_search.ingest.sources.read_options import AS_IS, Columns, ReadOptions
from hybrid_search.ingest.sources.records import CONTENT, Record, build_record, find
from hybrid_search.ingest.sources.turn_rows import group_calls
from hybrid_search.ingest.types import SourceLine
from hybrid_search.text.filters import ID, list_alternatives
from hybrid_search.text.values import read_period

HIT_ID = "_id"


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
        query = build_query(
            where,
            server_reader.fetch_properties(server, self.index) if where else [],
            by_id=self._columns["id"] == HIT_ID,
        )
        with closing(server_reader.iterate_hits(server, self.index, query)) as hits:
            if self.options.rows == "turn":
                yield from self._group_lines(hits)
                return
            for number, hit in enumerate(hits, 1):
                yield self._build_line(hit, number)

    @property
    def _columns(self) -> dict[str, str]:
        named = {"id": HIT_ID, **self.options.columns.of}
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
        if self._columns["id"] == HIT_ID:
            fields[HIT_ID] = hit["_id"]
        return Record(number, fields=fields)

    def _build_line(self, hit: Mapping[str, Any], number: int) -> SourceLine:
        record = self._read_hit(hit, number)
        columns = self._columns
        if "turns" not in columns and isinstance(find(record.fields or {}, columns["text"]), list):
            columns["turns"] = columns.pop("text")
        options = replace(self.options, columns=Columns(columns))
        return build_record(record, options).as_line(f"{hit['_index']}/{hit['_id']}")


INTEGERS = ("long", "integer")
EVERYTHING: dict[str, Any] = {"match_all": {}}


def build_query(
    where: Mapping[str, Any], mappings: Sequence[Mapping[str, Any]], *, by_id: bool
) -> dict[str, Any]:
    """Return a query that finds everything that `where` selects in indexes with `mappings`.

    `by_id` means that a document's id is its ``_id``. The query only has conditions that a server
    evaluates exactly, on whole keywords, integers and booleans; it would tokenize, round or convert
    other values.
    """
    filters = [
        clause
        for name, value in sorted(where.items())
        if (clause := _build_filter(name, list_alternatives(value), mappings, by_id))
    ]
    return {"bool": {"filter": filters}} if filters else EVERYTHING


def _build_filter(
    name: str, values: Sequence[Any], mappings: Sequence[Mapping[str, Any]], by_id: bool
) -> dict[str, Any] | None:
    if any(isinstance(value, Mapping) for value in values):  # comparisons are evaluated here
        return None
    if name == ID:
        return {"ids": {"values": list(values)}} if by_id else None
    clauses = [
        _build_terms(name, values, _find_field(properties, name.split(".")))
        for properties in mappings
    ]
    return clauses[0] if clauses and all(clause == clauses[0] for clause in clauses) else None


def _find_field(properties: Mapping[str, Any], steps: Sequence[str]) -> Mapping[str, Any]:
    """Return the mapping of a field, empty if it is not mapped.

    Also empty for fields of ``nested`` objects, which need special queries.
    """
    field: Mapping[str, Any] = {"properties": properties}
    for step in steps:
        if field.get("type", "object") != "object":
            return {}
        field = field.get("properties", {}).get(step, {})
    return field


def _build_terms(
    name: str, values: Sequence[Any], field: Mapping[str, Any]
) -> dict[str, Any] | None:
    if not field.get("index", True):
        return None
    kind = field.get("type")
    if kind == "text":
        inner = field.get("fields", {}).get("keyword", {})
        return (
            _build_terms(f"{name}.keyword", values, inner)
            if inner.get("type") == "keyword"
            else None
        )
    if kind == "keyword" and all(
        _is_plain_keyword(value, field.get("ignore_above", 8191)) for value in values
    ):
        return {"terms": {name: list(values)}}
    if kind in INTEGERS and all(_is_integer(value) for value in values):
        return {"terms": {name: [int(value) for value in values]}}
    if kind == "boolean" and all(str(value).lower() in ("true", "false") for value in values):
        return {"terms": {name: [str(value).lower() == "true" for value in values]}}
    return None


def _is_plain_keyword(value: Any, longest: int) -> bool:
    """Return whether the server stores this value as exactly this keyword.

    Text that looks like a number or boolean may match 7.0 or true, and a date may be the same time
    in another notation.
    """
    if not isinstance(value, str) or len(value) > longest // 2:
        return False
    is_truth_value = value.lower() in ("true", "false")
    return not (is_truth_value or _is_number(value) or read_period(value))


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _is_integer(value: Any) -> bool:
    if isinstance(value, bool) or not str(value).removeprefix("-").isdecimal():
        return False
    return abs(int(value)) < 2**31
