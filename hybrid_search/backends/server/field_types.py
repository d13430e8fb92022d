"""The types of metadata fields in a server's index, and documents that use them.

A server never changes the type of a field, so a document with another type is refused before it is
sent, with a reason that names a document to compare it with.
"""

from __future__ import annotations

from hybrid_search.backends.server import aliases, request_bodies
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.text.filters import new_fields
from hybrid_search.text.types import Document


class FieldTypes:
    """The fields of one index, and of the documents written since it was read."""

    def __init__(self, server: Server, index: aliases.ServerIndex) -> None:
        self._server, self._index_name = server, index.name
        self._fields = dict(index.fields)
        self._users: dict[str, str | None] = {}

    def learn(self, document: Document) -> None:
        """Record the fields of a document's metadata.

        If one has another type in the index, InputError is raised and nothing is recorded.
        """
        new = new_fields(self._fields, document.metadata, self._find_user)
        self._fields |= new
        self._users |= dict.fromkeys(new, document.id)

    def _find_user(self, name: str, _: str) -> str | None:
        """Return the id of a document that has the field; None if no document has it.

        The server is asked once for each field, and only for a refusal.
        """
        if name not in self._users:
            query = {"exists": {"field": f"metadata.{name}"}}
            body = {"size": 1, "query": query, **request_bodies.KEYS}
            # a name with a star would stand for other fields too
            answer = None if "*" in name else aliases.search(self._server, self._index_name, body)
            hits = answer["hits"]["hits"] if answer else []
            self._users[name] = str(hits[0]["fields"]["document_id"][0]) if hits else None
        return self._users[name]
