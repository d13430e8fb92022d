"""OpenSearch and Elasticsearch as a backend. Candidates come from the server's BM25 and kNN; cosines are computed from the codes that it stores."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from hybrid_search.access import PATIENCE
from hybrid_search.backends.base import Candidates, Content, IndexInfo, IndexSpec, Key, Listed, Request, Stored
from hybrid_search.backends.names import checked
from hybrid_search.backends.options import IndexOptions
from hybrid_search.backends.server import bodies, documents, indexes, walking
from hybrid_search.backends.server.base import Server
from hybrid_search.backends.server.failures import reason
from hybrid_search.backends.server.plugins import has_neural_search
from hybrid_search.backends.server.versions import COUNTS, NextVersion, described
from hybrid_search.backends.server.writer import ServerWriter
from hybrid_search.compat import hybrid_body
from hybrid_search.errors import AccessError, HybridSearchError, ServerError, UsageError
from hybrid_search.filters import Scalar
from hybrid_search.tokens import best_passages
from hybrid_search.types import TokenCodes

CANDIDATES = 500
"""Passages that the covering spans propose and whose every span is then scored."""

_log = logging.getLogger(__name__)

LIMITS = ("maxClauseCount", "max_terms_count")
"""What servers call their limits of the words of a phrase (OpenSearch takes 1,024) and of the values of a filter (65,536)."""

MANY = 500
"""Passages of one further request: their codes are 16 MB."""


class ServerBackend:
    """Indexes on one cluster. `options` are for those that are made here; a writer waits `patience` seconds. Safe to use from several threads."""

    def __init__(self, server: Server, options: IndexOptions, patience: float = PATIENCE) -> None:
        self.server, self.options, self._patience = server, options, patience
        self._hybrid: bool | None = None
        self._preference = secrets.token_hex(8)
        """Sends all requests of this object to the same copies of the shards: replicas that differ in deleted passages differ in scores."""

    def writer(self, index: str, spec: IndexSpec) -> ServerWriter:
        """Open `index` for writing, and make it if it is not there. Raises ModelError if it is of another model or policy."""
        return ServerWriter(self.server, indexes.opened(self.server, index, spec, self.options), self.options, patience=self._patience)

    def create(self, index: str, spec: IndexSpec, options: Mapping[str, str]) -> None:
        """Make an empty `index`, if there is none, by this object's options and those given here. Raises ModelError for an index of another model
        or policy, UsageError for one that was made with other options than those given here."""
        made = indexes.opened(self.server, index, spec, self.options.with_(options))
        held = indexes.options(self.server, made) if options else {}
        other = next((name for name, value in options.items() if held.get(name, value) != value), None)
        if other:
            raise UsageError(
                f"index {index!r} has {other} {held[other]!r}, and this is {options[other]!r}: leave it out, or make the next version by reindex"
            )

    def next_version(self, index: str, spec: IndexSpec, options: Mapping[str, str]) -> NextVersion:
        """A new index for `index`, to be filled and published, with its options but for those given. Raises IndexMissingError, UsageError."""
        return NextVersion(self.server, index, spec, options)

    def head(self, index: str) -> tuple[IndexSpec, Mapping[str, str]]:
        """What `index` was made for, and its metadata fields. Raises IndexMissingError."""
        made = indexes.find(self.server, index)
        return made.spec, made.fields

    def describe(self, index: str) -> IndexInfo:
        """What `index` holds, counted. Raises IndexMissingError."""
        made = indexes.find(self.server, index)
        return described(made, self._search(index, COUNTS))

    def indexes(self) -> list[str]:
        """The names of all indexes, sorted."""
        return indexes.names(self.server)

    def walk(self, index: str) -> Iterator[Listed]:
        """Every passage that searches see."""
        return walking.listed(self.server, indexes.find(self.server, index).name)

    def candidates(self, index: str, request: Request) -> Candidates:
        """Both legs in one ``_msearch``. Their passages come with their codes; those of the span leg are put in the order of their best span, all
        scored."""
        found = self._msearch(index, self._legs(request))
        codes = {} if _wide(request) else {key: coded for hits in found for key, coded in _coded(hits).items()}
        lexical = {documents.key(hit): hit["_score"] for hit in found.pop(0)} if request.lexical else {}
        if not request.semantic:
            return Candidates(lexical, codes=codes)
        # Of passages of equal scores the first id comes first, not the first that the graph came upon.
        keys = sorted(map(documents.key, found[0]), key=documents.place)
        codes |= self._codes(index, keys) if _wide(request) else {}
        semantic = best_passages(request.vector, {key: codes[key] for key in keys}, request.window)
        return Candidates(lexical, semantic, f"HNSW, {len(keys)} passages scored exactly", codes)

    def complete(self, index: str, request: Request, keys: Sequence[Key], found: Candidates | None = None) -> list[Stored]:
        """The passages of `keys` with BM25 and codes, in order: what `found` does not have, in one ``_msearch``; vanished ones left out."""
        all_known = found is not None and request.lexical and len(found.lexical) < request.window  # what else is there does not match
        found = found or Candidates()
        scores: dict[str, float] = (dict.fromkeys(keys, 0.0) if all_known else {}) | dict(found.lexical)
        codes: dict[str, TokenCodes] = {**found.codes, **found.semantic}
        for some in _batches([key for key in keys if key not in scores or key not in codes]):
            unscored, uncoded = [key for key in some if key not in scores], [key for key in some if key not in codes]
            asked = [bodies.match(request, len(unscored), among=unscored)] if unscored else []
            answers = self._msearch(index, asked + ([bodies.codes(uncoded)] if uncoded else []))
            scores |= {documents.key(hit): hit["_score"] for hit in (answers.pop(0) if unscored else [])}
            codes |= {key: coded for each in answers for key, coded in _coded(each).items()}
        return [documents.stored(key, scores.get(key, 0.0), codes[key]) for key in keys if key in codes]

    def _codes(self, index: str, keys: Sequence[str]) -> dict[str, TokenCodes]:
        """The codes of many passages, some at a time."""
        found = (self._search(index, bodies.codes(some))["hits"]["hits"] for some in _batches(keys))
        return {key: coded for hits in found for key, coded in _coded(hits).items()}

    def _legs(self, request: Request) -> list[dict[str, Any]]:
        """The searches for the candidates."""
        shown = bodies.KEYS if _wide(request) else bodies.CODES
        match = bodies.match(request, request.window, **shown)
        nearest = bodies.nearest(self.server.engine, request, max(CANDIDATES, request.window), **shown)
        return [leg for leg, asked in ((match, request.lexical), (nearest, request.semantic)) if asked]

    def contents(self, index: str, keys: Sequence[Key]) -> dict[Key, Content]:
        """What is shown of each passage of `keys` that is there."""
        found = (self._search(index, bodies.contents(some))["hits"]["hits"] for some in _batches(keys))
        return {hit["_id"]: documents.content(hit) for hits in found for hit in hits}

    def highlights(self, index: str, request: Request, keys: Sequence[Key]) -> dict[Key, list[tuple[int, int]]]:
        """Start and end of the matching words of each passage of `keys` that has any."""
        found = (self._search(index, bodies.highlights(request, some))["hits"]["hits"] for some in _batches(keys))
        return {hit["_id"]: documents.highlighted(hit) for hits in found for hit in hits if "highlight" in hit}

    def facets(self, index: str, request: Request, fields: Sequence[str]) -> dict[str, dict[Scalar, int]]:
        """How many matching documents have each value of each field."""
        counted = self._search(index, bodies.facets(request, fields))["aggregations"]
        return {name: {_value(each): each["documents"]["value"] for each in counted[str(number)]["buckets"]} for number, name in enumerate(fields)}

    def hybrid(self, index: str, request: Request, alpha: float, technique: str) -> dict[Key, float] | None:
        """The scores of the server's own ``hybrid`` query; None where it has none."""
        if not self._has_hybrid():
            return None
        body = self._hybrid_body(request, alpha, technique, request.window, 0) | {"_source": False}
        return {hit["_id"]: hit["_score"] for hit in self._search(index, body)["hits"]["hits"]}

    def bodies(self, index: str, request: Request, alpha: float, technique: str | None, size: int, offset: int) -> list[tuple[str, dict[str, Any]]]:
        """Path and body of both legs, or by `technique` of the server's own ``hybrid`` query, as its Dev Tools take them."""
        path = f"/{quote(checked(index))}/_search"
        if technique is not None:
            return [(path, self._hybrid_body(request, alpha, technique, size, offset))]
        return [(path, body) for body in self._legs(request)]

    def _hybrid_body(self, request: Request, alpha: float, technique: str, size: int, offset: int) -> dict[str, Any]:
        if self.server.engine != "opensearch":
            raise UsageError(f"{self.server} is {self.server.engine}, whose own fusion this is not: leave compat out")
        vector = documents.rounded(request.vector)
        return hybrid_body(
            request.phrase,
            vector,
            version=self.server.version,
            alpha=alpha,
            technique=technique,
            size=size,
            offset=offset,
            window=request.window,
            filter=bodies.within(self.server.engine, request),
        )

    def _has_hybrid(self) -> bool:
        if self._hybrid is None:
            try:
                self._hybrid = has_neural_search(self.server)
            except AccessError as error:  # listing plugins is a privilege that searching does not need
                _log.info("whether %s has its own hybrid query cannot be seen: %s", self.server, error)
                self._hybrid = False
        return self._hybrid

    def drop(self, index: str) -> None:
        """Remove `index` and all in it, and its notes on refused documents. Raises IndexMissingError."""
        made = indexes.find(self.server, index)
        indexes.delete(self.server, made.name)
        indexes.delete(self.server, f"{index}{indexes.REJECTED}")

    def close(self) -> None:
        """Close the connections; the next call opens them again."""
        self.server.close()

    def _search(self, index: str, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return indexes.search(self.server, checked(index), body, {"preference": self._preference, **indexes.WHOLE})
        except ServerError as error:
            raise self._told(index, error) from error

    def _msearch(self, index: str, searches: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
        """The hits of several searches of `index`, in one round trip; tried again where the server was too busy for one of them."""
        if not searches:
            return []
        head = {"index": checked(index), "preference": self._preference, **indexes.WHOLE}
        lines = [line for body in searches for line in (head, body)]

        def check(answer: Mapping[str, Any]) -> None:
            failed = next((each for each in answer["responses"] if "error" in each), None)
            if failed is not None:
                raise ServerError(f"{self.server} could not search {index!r}: {reason(failed)}", int(failed.get("status", 500)))

        try:
            answers = self.server.request("POST", "/_msearch", lines=lines, binary=True, check=check)["responses"]
        except ServerError as error:
            raise self._told(index, error) from error
        return [answer["hits"]["hits"] for answer in answers]

    def _told(self, index: str, error: ServerError) -> HybridSearchError:
        """`error`, or what it says of the caller: that there is no such index, or that too much was asked at once."""
        if error.status == 404:
            return indexes.missing(self.server, index)
        if error.status == 400 and any(limit in str(error) for limit in LIMITS):
            return UsageError(f"that is too much to ask at once: {error}. Use a shorter phrase, or fewer values in where")
        return error


def _batches(keys: Sequence[Key]) -> Iterator[list[Key]]:
    for start in range(0, len(keys), MANY):
        yield list(keys[start : start + MANY])


def _wide(request: Request) -> bool:
    """Whether so many candidates are asked for that all their codes would not do in one answer."""
    return request.window > MANY


def _coded(hits: Sequence[Mapping[str, Any]]) -> dict[Key, TokenCodes]:
    return {documents.key(hit): documents.codes(hit) for hit in hits}


def _value(bucket: Mapping[str, Any]) -> Scalar:
    """The value that a bucket counts: booleans are numbers to a server, and say so in words beside them."""
    if bucket.get("key_as_string") in ("true", "false"):
        return bool(bucket["key"])
    key: Scalar = bucket["key"]
    return int(key) if isinstance(key, float) and key.is_integer() else key
