"""An index of somebody else's as the source: its documents, read through the server, as lines."""

from __future__ import annotations

import json
from collections.abc import Container, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from hybrid_search.backends.server.transport.base import Server
from hybrid_search.ingest.sources import server_filter, server_reader
from hybrid_search.ingest.sources.tables import stringify_id
from hybrid_search.ingest.types import SourceLine

ID = "_id"
RESERVED = ("id", "text", "turns")


@dataclass(frozen=True, slots=True)
class ForeignIndex:
    """Which index, which of its fields is the text (or, where it holds a list, the turns), which
    the id, and what its documents must fulfil.

    Fields have dotted names. All others are metadata; those called id, text or turns, which a
    document has itself, as ``source_id`` and so on.
    """

    index: str
    text_field: str = "text"
    id_field: str = ID
    where: Mapping[str, Any] = field(default_factory=dict)

    def lines(self, server: Server) -> Generator[SourceLine, None, None]:
        """All documents at this point in time.

        Close the generator, or read it to its end: the server keeps what it reads until then.

        The server leaves out some of what `where` does not select, not all of it. Raises
        IndexMissingError, ServerError.
        """
        query = server_filter.build_query(
            self.where,
            server_reader.fetch_properties(server, self.index) if self.where else [],
            by_id=self.id_field == ID,
        )
        with closing(server_reader.iterate_hits(server, self.index, query)) as hits:
            for number, hit in enumerate(hits, 1):
                yield self._build_line(hit, number)

    def _build_line(self, hit: Mapping[str, Any], number: int) -> SourceLine:
        source = {**hit.get("_source", {}), **({ID: hit["_id"]} if self.id_field == ID else {})}
        location, places = (
            f"{hit['_index']}/{hit['_id']}",
            [_find_field(source, name) for name in (self.id_field, self.text_field)],
        )
        for place, name in zip(places, (self.id_field, self.text_field), strict=True):
            if place is None:
                fault = f"the document has no field {name!r}: its fields are {', '.join(sorted(source))}"
                return SourceLine(location, number, json.dumps(source).encode(), fault)
        name, content = (place[0].pop(place[1]) for place in places if place)
        own = {"id": stringify_id(name), "turns" if isinstance(content, list) else "text": content}
        metadata = {
            _rename_reserved(key, source) if key in RESERVED else key: value
            for key, value in source.items()
            if key not in own or own[key] != value
        }
        return SourceLine(location, number, json.dumps({**metadata, **own}).encode())


def _rename_reserved(key: str, used_names: Container[str]) -> str:
    """A name for a field that a document has itself."""
    name = f"source_{key}"
    return _rename_reserved(name, used_names) if name in used_names else name


def _find_field(source: dict[str, Any], name: str) -> tuple[dict[str, Any], str] | None:
    """The object that holds the field of a dotted name, and its key there; None where there is
    none, or null.
    """
    if source.get(name) is not None:
        return source, name
    first, dot, inner_name = name.partition(".")
    inner = source.get(first)
    return _find_field(inner, inner_name) if dot and isinstance(inner, dict) else None
