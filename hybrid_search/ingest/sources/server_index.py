"""An index of a server that another program filled, as the source: its documents as lines."""

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
from hybrid_search.text.name_lists import list_names

ID = "_id"
RESERVED = ("id", "text", "turns")


@dataclass(frozen=True, slots=True)
class ForeignIndex:
    """An index to read, the fields of its text and id, and what its documents must fulfil.

    Fields have dotted names. A text field that holds a list is taken as the turns. All other fields
    are metadata; those called id, text or turns become ``source_id`` and so on, because a document
    has its own.
    """

    index: str
    text_field: str = "text"
    id_field: str = ID
    where: Mapping[str, Any] = field(default_factory=dict)

    def lines(self, server: Server) -> Generator[SourceLine, None, None]:
        """Yield all documents of this point in time.

        The server leaves out some of the documents that `where` does not select, not all. Close the
        generator, or read it to its end: until then the server keeps the point in time.
        IndexMissingError is raised if there is no such index, ServerError if the server fails.
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
        source = dict(hit.get("_source", {}))
        if self.id_field == ID:
            source[ID] = hit["_id"]
        location = f"{hit['_index']}/{hit['_id']}"
        names = self.id_field, self.text_field
        places = [_find_field(source, name) for name in names]
        for place, name in zip(places, names, strict=True):
            if place is None:
                fault = f"the document has no field {name!r}"
                detail = f"its fields are {list_names(sorted(source), name)}"
                return SourceLine(location, number, json.dumps(source).encode(), fault, detail)
        name, content = (place[0].pop(place[1]) for place in places if place)
        own = {"id": stringify_id(name), "turns" if isinstance(content, list) else "text": content}
        fields = {key: value for key, value in source.items() if (key, value) not in own.items()}
        metadata = {_rename_reserved(key, source): value for key, value in fields.items()}
        return SourceLine(location, number, json.dumps({**metadata, **own}).encode())


def _rename_reserved(key: str, used_names: Container[str]) -> str:
    """Return `key`, or a new name for it if a document has a field of this name itself."""
    if key not in RESERVED:
        return key
    name = f"source_{key}"
    while name in used_names:
        name = f"source_{name}"
    return name


def _find_field(source: dict[str, Any], name: str) -> tuple[dict[str, Any], str] | None:
    """Return the object that holds the field of a dotted name, and its key in that object.

    None if there is no such field, or it is null.
    """
    if source.get(name) is not None:
        return source, name
    first, dot, inner_name = name.partition(".")
    inner = source.get(first)
    return _find_field(inner, inner_name) if dot and isinstance(inner, dict) else None
