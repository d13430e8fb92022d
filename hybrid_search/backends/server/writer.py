"""Writes documents into one index of a server: all passages of a version together, then what an older version had more."""

from __future__ import annotations

import logging
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from hybrid_search import mappings
from hybrid_search.access import PATIENCE
from hybrid_search.backends.base import Refusal, Refused
from hybrid_search.backends.options import IndexOptions
from hybrid_search.backends.server import documents, indexes
from hybrid_search.backends.server.base import Outcome, Server
from hybrid_search.backends.server.draft import Draft
from hybrid_search.backends.server.patience import Patient
from hybrid_search.errors import IndexStoreError, InputError, ServerError
from hybrid_search.filters import new_fields
from hybrid_search.types import Entry

MANY = 1000
"""Document ids in one request."""
RESULTS = 10_000
"""Hits of one search, as servers allow by default."""
UNSEEN = 10_000
"""Documents written before the index is refreshed, at the latest, so that a further version of one of them finds what it replaces."""

COURTESY = 10.0
"""Seconds for which a server may not take notes on refused documents before they are given up."""

_log = logging.getLogger(__name__)


class ServerWriter:
    """Writes the index `made`. Several may write at once, if not the same documents. `known` may be called from another thread than the rest.

    A server that takes nothing is waited for up to `patience` seconds. `published` says that its alias stands for it: where it no longer does,
    nobody would see what is written, and that is an error."""

    def __init__(self, server: Server, made: indexes.Made, options: IndexOptions, *, patience: float = PATIENCE, published: bool = True) -> None:
        self._server, self._courteous = Patient(server, patience), Patient(server, COURTESY)
        self._made, self._options, self._published = made, options, published
        self._fields = dict(made.fields)
        self._draft: Draft | None = None
        self._unseen: set[str] = set()
        indexes.refresh(self._server, made.name)
        self._most_spans = self._nested_limit()

    def _nested_limit(self) -> int:
        name = "index.mapping.nested_objects.limit"
        settings = self._server.request(
            "GET", f"/{quote(self._made.name)}/_settings/{name}", params={"include_defaults": True, "flat_settings": True}
        )
        ((_, held),) = settings.items()
        return int({**held.get("defaults", {}), **held["settings"]}[name])

    def known(self, ids: Sequence[str]) -> dict[str, str]:
        """The source hash of each of `ids` that was wholly indexed when the writer was opened, or was seen to be since."""
        found: dict[str, str] = {}
        for start in range(0, len(ids), MANY):
            body = _versions(ids[start : start + MANY])
            buckets = self._search(body)["aggregations"]["documents"]["buckets"] if ids else []
            found |= {bucket["key"]: bucket["hashes"]["buckets"][0]["key"] for bucket in buckets if _whole(bucket)}
        return found

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Take in passages; documents whose last one has come are sent. Raises ServerError when the server takes no more."""
        refused: list[Refusal] = []
        ready: list[Draft] = []
        for entry in entries:
            reason = self._take(entry)
            if reason:
                refused.append(Refusal(entry.document, reason))
            elif entry.last and self._draft:
                ready.append(self._draft)
                self._draft = None
        try:
            for together in _distinct(ready):
                refused += self._send(together)
        finally:
            for draft in ready:
                draft.close()
        return refused

    def _take(self, entry: Entry) -> str | None:
        """Why the document cannot be indexed, said once; None if it can, or was refused before."""
        try:
            if entry.passage.ordinal == 0:
                self.abandon()
                new = new_fields(self._fields, entry.document.metadata)
                self._fields |= new
                self._draft = Draft(entry.document, entry.passages)
            if self._draft:
                self._check(entry)
                self._draft.add(documents.to_json(documents.source(entry, self._made.spec, datetime.now(UTC).isoformat(timespec="seconds"))))
        except InputError as error:
            self.abandon()
            return str(error)
        return None

    def abandon(self) -> None:
        """Forget the document whose last passage has not come; of its passages nothing was sent."""
        if self._draft:
            self._draft.close()
        self._draft = None

    def _check_alias(self) -> None:
        """Raise IndexStoreError where the alias stands for another version by now."""
        now = indexes.stands_for(self._server, self._made.alias) if self._published else {self._made.name}
        if self._made.name not in now:
            raise IndexStoreError(
                f"{self._made.alias!r} stood for {self._made.name} when this began, and stands for {', '.join(sorted(now)) or 'none'} now: "
                "it was reindexed or deleted meanwhile. Run the same command again"
            )

    def _check(self, entry: Entry) -> None:
        if entry.spans > self._most_spans:
            raise InputError(
                f"passage {entry.passage.ordinal} has {entry.spans} covering spans, and index {self._made.name!r} takes {self._most_spans} nested "
                f"objects: use a policy of fewer spans than {self._made.spec.policy!r}, or raise index.mapping.nested_objects.limit"
            )

    def _send(self, drafts: Sequence[Draft]) -> list[Refusal]:
        """Write the passages of some documents, and remove what older versions had more. None of them is left half written."""
        self._check_alias()
        replaced = self._leftovers(drafts)
        refused: dict[str, str] = {}
        taken: Counter[str] = Counter()
        for outcome in self._server.sent(self._actions(drafts)):
            document_id = documents.place(str(outcome.action["_id"]))[0]
            if outcome.taken:
                taken[document_id] += 1
            else:
                refused.setdefault(document_id, f"the server refused it: {outcome.reason}")
        half = [draft for draft in drafts if draft.document.id in refused and taken[draft.document.id]]
        untouched = set(refused) - {draft.document.id for draft in half}  # whose older version is whole
        remains = [(draft.document.id, ordinal) for draft in half for ordinal in range(draft.passages)]
        self._remove([*remains, *(each for each in replaced if each[0] not in untouched)])
        self._unseen |= {draft.document.id for draft in drafts}
        return [Refusal(draft.document, refused[draft.document.id]) for draft in drafts if draft.document.id in refused]

    def _actions(self, drafts: Iterable[Draft]) -> Iterator[dict[str, Any]]:
        for draft in drafts:
            for ordinal, source in enumerate(draft):
                id_ = documents.passage_id(draft.document.id, ordinal)
                yield {"_op_type": "index", "_index": self._made.name, "_id": id_, "_source": source.decode()}

    def _leftovers(self, drafts: Sequence[Draft]) -> list[tuple[str, int]]:
        """Passages that the index has of these documents beyond those of the new version."""
        if len(self._unseen) > UNSEEN or any(draft.document.id in self._unseen for draft in drafts):
            self._refresh()
        beyond = [
            {"bool": {"filter": [{"term": {"document_id": draft.document.id}}, {"range": {"ordinal": {"gte": draft.passages}}}]}} for draft in drafts
        ]
        return [each for start in range(0, len(beyond), MANY) for each in self._places({"bool": {"should": beyond[start : start + MANY]}})]

    def _places(self, query: dict[str, Any]) -> list[tuple[str, int]]:
        """Document id and ordinal of every passage that fulfils `query`."""
        body: dict[str, Any] = {"size": RESULTS, "query": query, "_source": False, "sort": ["document_id", "ordinal"]}
        found: list[tuple[str, int]] = []
        while hits := self._search(body)["hits"]["hits"]:
            found += [documents.place(hit["_id"]) for hit in hits]
            body["search_after"] = hits[-1]["sort"]
            if len(hits) < RESULTS:
                break
        return found

    def _remove(self, places: Iterable[tuple[str, int]]) -> None:
        actions = ({"_op_type": "delete", "_index": self._made.name, "_id": documents.passage_id(*each)} for each in places)
        _all_taken(self._server.sent(actions))

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents; how many there were."""
        self._check_alias()
        self._refresh()
        found: list[tuple[str, int]] = []
        for start in range(0, len(ids), MANY):
            found += self._places({"terms": {"document_id": list(ids[start : start + MANY])}})
        self._remove(found)
        self._refresh()
        return len({document_id for document_id, _ in found})

    def note(self, refused: Sequence[Refused]) -> None:
        """Keep notes of refused documents in the index ``NAME-rejected``, for dashboards. It is a courtesy: where it fails, a line is logged."""
        name, now = f"{self._made.alias}{indexes.REJECTED}", datetime.now(UTC).isoformat(timespec="seconds")
        try:
            indexes.ensure(self._courteous, name, mappings.rejected(self._server.engine, self._options))
            notes = [
                {"index": self._made.alias, "at": now, **{key: value for key, value in asdict(each).items() if value is not None}} for each in refused
            ]
            actions = [{"_op_type": "index", "_index": name, "_id": secrets.token_hex(10), "_source": each} for each in notes]
            _all_taken(self._courteous.sent(actions))
            indexes.refresh(self._courteous, name)
        except ServerError as error:
            _log.warning("refused documents were not noted in %r (they are in the rejects file): %s", name, error)

    def _search(self, body: dict[str, Any]) -> dict[str, Any]:
        return indexes.search(self._server, self._made.name, body)

    def _refresh(self) -> None:
        indexes.refresh(self._server, self._made.name)
        self._unseen.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.abandon()
        if kind is None:
            self._refresh()


def _versions(ids: Sequence[str]) -> dict[str, Any]:
    """How many passages each document has, by the version that they are of."""
    hashes = {"terms": {"field": "source_hash", "size": 2}, "aggs": {"passages": {"max": {"field": "passages"}}}}
    documents_ = {"terms": {"field": "document_id", "size": len(ids)}, "aggs": {"hashes": hashes}}
    return {"size": 0, "query": {"terms": {"document_id": list(ids)}}, "aggs": {"documents": documents_}}


def _whole(bucket: dict[str, Any]) -> bool:
    """Whether a document has all passages of one version, and none of another."""
    versions = bucket["hashes"]["buckets"]
    return len(versions) == 1 and versions[0]["doc_count"] == versions[0]["passages"]["value"]


def _distinct(drafts: Iterable[Draft]) -> Iterator[list[Draft]]:
    """Drafts that may be sent together: a second version of a document waits until the first is there."""
    together: dict[str, Draft] = {}
    for draft in drafts:
        if draft.document.id in together:
            yield list(together.values())
            together = {}
        together[draft.document.id] = draft
    if together:
        yield list(together.values())


def _all_taken(outcomes: Iterable[Outcome]) -> None:
    for outcome in outcomes:
        if not outcome.taken:
            raise ServerError(f"the server refused to {outcome.action['_op_type']} {outcome.action['_id']!r}: {outcome.reason}", outcome.status)
