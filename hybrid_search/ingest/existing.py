"""An index of somebody else's as the source: its documents, read through the server, as lines."""

from __future__ import annotations

import json
from collections.abc import Container, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from hybrid_search.backends.server import narrowing, reading
from hybrid_search.backends.server.base import Server
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.tables import worded

ID = "_id"
RESERVED = ("id", "text", "turns")


@dataclass(frozen=True, slots=True)
class Existing:
    """Which index, which of its fields is the text (or, where it holds a list, the turns), which the id, and what its documents must fulfil.

    Fields have dotted names. All others are metadata; those called id, text or turns, which a document has itself, as ``source_id`` and so on.
    """

    index: str
    text_field: str = "text"
    id_field: str = ID
    where: Mapping[str, Any] = field(default_factory=dict)

    def lines(self, server: Server) -> Generator[Line, None, None]:
        """All documents at this point in time. Close the generator, or read it to its end: the server keeps what it reads until then.

        The server leaves out some of what `where` does not select, not all of it. Raises IndexMissingError, ServerError.
        """
        asked = narrowing.query(self.where, reading.mapped(server, self.index) if self.where else [], by_id=self.id_field == ID)
        with closing(reading.hits(server, self.index, asked)) as hits:
            for number, hit in enumerate(hits, 1):
                yield self._line(hit, number)

    def _line(self, hit: Mapping[str, Any], number: int) -> Line:
        source = {**hit.get("_source", {}), **({ID: hit["_id"]} if self.id_field == ID else {})}
        where, found = f"{hit['_index']}/{hit['_id']}", [_place(source, name) for name in (self.id_field, self.text_field)]
        for place, name in zip(found, (self.id_field, self.text_field), strict=True):
            if place is None:
                fault = f"the document has no field {name!r}: its fields are {', '.join(sorted(source))}"
                return Line(where, number, json.dumps(source).encode(), fault)
        name, given = (place[0].pop(place[1]) for place in found if place)
        own = {"id": worded(name), "turns" if isinstance(given, list) else "text": given}
        others = {_renamed(key, source) if key in RESERVED else key: value for key, value in source.items() if key not in own or own[key] != value}
        return Line(where, number, json.dumps({**others, **own}).encode())


def _renamed(key: str, taken: Container[str]) -> str:
    """A name for a field that a document has itself."""
    name = f"source_{key}"
    return _renamed(name, taken) if name in taken else name


def _place(source: dict[str, Any], name: str) -> tuple[dict[str, Any], str] | None:
    """The object that holds the field of a dotted name, and its key there; None where there is none, or null."""
    if source.get(name) is not None:
        return source, name
    first, dot, rest = name.partition(".")
    inner = source.get(first)
    return _place(inner, rest) if dot and isinstance(inner, dict) else None
