"""An index of matches on a server, for dashboards: a set for each topic, replaced as a whole.

The id of a match is made of what and where it is. A run writes its matches with its mark, and then
removes those of its topics with another. If it is killed and run again, the set is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from hybrid_search.backends.index_names import check_index_name
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import aliases, answers, mappings
from hybrid_search.backends.server.transport.bulk import Action
from hybrid_search.backends.server.transport.client import encode_json
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.credentials import PATIENCE
from hybrid_search.errors import ServerError, UsageError
from hybrid_search.text.values import FORMS

META = "hybrid_search_matches"
"""The key of ``_meta`` that marks an index of matches."""

PAGE_MATCHES = 1000

PROPERTIES: Mapping[str, Mapping[str, Any]] = {
    **{kind: {"type": "keyword", "ignore_above": 8191} for kind in FORMS},
    "number": {"type": "double"},
    "boolean": {"type": "boolean"},
    "object": {"properties": {}},
}
"""The mapping of a metadata field of each type."""


class MatchIndex:
    """Writes matches of the documents of `source_index` into the index `name`."""

    def __init__(self, server: Server, name: str, source_index: str, options: IndexOptions) -> None:
        self._server = server.wait(PATIENCE)
        self._name, self._source_index = check_index_name(name), source_index
        self._options = options

    def open(self, fields: Mapping[str, str]) -> None:
        """Create the index, unless it exists, and map these metadata fields (name -> type).

        Raises:
            UsageError: If the index holds something else, or has a field of another type.
            ServerError: If the server refuses the mapping for another reason.
        """
        body = mappings.notes_body("matches", self._server.engine, self._options)
        aliases.ensure_index(self._server, self._name, body)
        path = f"/{quote(self._name)}/_mapping"
        mappings_by_name = self._server.request("GET", path, read=answers.MAPPINGS.read)
        if not all(META in item["mappings"].get("_meta", {}) for item in mappings_by_name.values()):
            raise UsageError(
                f"index {self._name!r} is not an index of matches: choose another name for "
                "--to-index"
            )
        metadata = body["mappings"]["properties"]["metadata"]
        change = {"properties": {"metadata": {**metadata, "properties": _nest_properties(fields)}}}
        try:
            self._server.request("PUT", path, body=change, read=answers.ACKNOWLEDGED.read)
        except ServerError as error:
            if error.status != 400:
                raise
            raise UsageError(
                f"index {self._name!r} has a metadata field of another type than index "
                f"{self._source_index!r}: choose another name for --to-index"
            ) from error

    def write(self, run: str, matches: Iterable[Mapping[str, Any]]) -> int:
        """Write matches with the mark of a run, and return how many."""
        return self._send(self._build_action(run, match) for match in matches)

    def remove_earlier(self, run: str, topics: Sequence[str]) -> int:
        """Remove the matches of these topics that earlier runs wrote, and return how many."""
        # not every server can delete by a query, so they are listed and deleted
        filters = [{"term": {"index": self._source_index}}, {"terms": {"topic": [*topics]}}]
        query = {"bool": {"filter": filters, "must_not": [{"term": {"run": run}}]}}
        body = {"query": query, "size": PAGE_MATCHES, "_source": False}
        count = 0
        while True:
            aliases.refresh(self._server, self._name)
            hits = aliases.search(self._server, self._name, body)["hits"]["hits"]
            if not hits:
                return count
            count += self._send(Action(self._name, hit["_id"]) for hit in hits)

    def _build_action(self, run: str, match: Mapping[str, Any]) -> Action:
        names = ("topic", "document_id", "start", "end")
        place = json.dumps([self._source_index, *(match[name] for name in names)])
        id_ = hashlib.sha256(place.encode()).hexdigest()[:40]
        source = {**match, "index": self._source_index, "run": run}
        return Action(self._name, id_, encode_json(source))

    def _send(self, actions: Iterable[Action]) -> int:
        """Return the number of actions; raise ServerError if one is refused."""
        count = 0
        for outcome in self._server.send_all(actions):
            if not outcome.is_accepted:
                raise ServerError(
                    f"the server refused to {outcome.action.kind} a match in {self._name!r} "
                    f"({outcome.kind}): run the same command again",
                    outcome.status,
                )
            count += 1
        return count


def _nest_properties(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the mapping of metadata fields, whose names are dotted paths."""
    root: dict[str, Any] = {}
    for name, kind in sorted(fields.items()):
        *parents, last = name.split(".")
        properties = root
        for parent in parents:
            properties = properties.setdefault(parent, {"properties": {}})["properties"]
        if kind != "object":
            properties[last] = PROPERTIES[kind]
    return root
