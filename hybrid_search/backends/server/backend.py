"""OpenSearch and Elasticsearch as a backend.

Candidates come from the server's BM25 and kNN; cosines are computed from the codes that it stores.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from hybrid_search.backends.index_names import check_index_name
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import aliases, passage_codec, request_bodies, scan
from hybrid_search.backends.server.hybrid_request import hybrid_body
from hybrid_search.backends.server.next_version import COUNTS, NextVersion, parse_counts
from hybrid_search.backends.server.transport.base import Server
from hybrid_search.backends.server.transport.errors import reason
from hybrid_search.backends.server.transport.plugins import has_neural_search
from hybrid_search.backends.server.writer import ServerWriter
from hybrid_search.backends.types import (
    Candidates,
    IndexInfo,
    IndexSpec,
    Key,
    ListedPassage,
    PassageContent,
    Request,
    StoredPassage,
)
from hybrid_search.credentials import PATIENCE
from hybrid_search.errors import AccessError, HybridSearchError, ServerError, UsageError
from hybrid_search.text.filters import Scalar
from hybrid_search.text.token_codes import best_passages
from hybrid_search.text.types import TokenCodes

CANDIDATES = 500
"""Passages that the covering spans propose and whose every span is then scored."""

_log = logging.getLogger(__name__)

LIMITS = ("maxClauseCount", "max_terms_count")
"""What servers call their limits of the words of a phrase (OpenSearch takes 1,024) and of the
values of a filter (65,536).
"""

BATCH_PASSAGES = 500
"""Passages of one further request: their codes are 16 MB."""


class ServerBackend:
    """Indexes on one cluster.

    `options` are for those that are made here; a writer waits `patience` seconds. Safe to use from
    several threads.
    """

    def __init__(self, server: Server, options: IndexOptions, patience: float = PATIENCE) -> None:
        self.server, self.options, self._patience = server, options, patience
        self._supports_hybrid: bool | None = None
        self._preference = secrets.token_hex(8)
        """Sends all requests of this object to the same copies of the shards: replicas that differ
        in deleted passages differ in scores.
        """

    def writer(self, index: str, spec: IndexSpec) -> ServerWriter:
        """Open `index` for writing, and make it if it is not there.

        Raises ModelError if it is of another model or policy.
        """
        return ServerWriter(
            self.server,
            aliases.open_or_create(self.server, index, spec, self.options),
            self.options,
            patience=self._patience,
        )

    def create_index(self, index: str, spec: IndexSpec, options: Mapping[str, str]) -> None:
        """Make an empty `index`, if there is none, by this object's options and those given here.

        Raises ModelError for an index of another model or policy, UsageError for one that was made
        with other options than those given here.
        """
        server_index = aliases.open_or_create(
            self.server, index, spec, self.options.override(options)
        )
        index_options = aliases.read_options(self.server, server_index) if options else {}
        conflict = next(
            (name for name, value in options.items() if index_options.get(name, value) != value),
            None,
        )
        if conflict:
            raise UsageError(
                f"index {index!r} has {conflict} {index_options[conflict]!r}, and this is {options[conflict]!r}: leave it out, or make the next version by reindex"
            )

    def create_next_version(
        self, index: str, spec: IndexSpec, options: Mapping[str, str]
    ) -> NextVersion:
        """A new index for `index`, to be filled and published, with its options but for those
        given.

        Raises IndexMissingError, UsageError.
        """
        return NextVersion(self.server, index, spec, options)

    def read_head(self, index: str) -> tuple[IndexSpec, Mapping[str, str]]:
        """What `index` was made for, and its metadata fields. Raises IndexMissingError."""
        server_index = aliases.find_index(self.server, index)
        return server_index.spec, server_index.fields

    def describe_index(self, index: str) -> IndexInfo:
        """What `index` holds, counted. Raises IndexMissingError."""
        server_index = aliases.find_index(self.server, index)
        return parse_counts(server_index, self._search(index, COUNTS))

    def list_indexes(self) -> list[str]:
        """The names of all indexes, sorted."""
        return aliases.list_names(self.server)

    def iterate_passages(self, index: str) -> Iterator[ListedPassage]:
        """Every passage that searches see."""
        return scan.iterate_passages(self.server, aliases.find_index(self.server, index).name)

    def find_candidates(self, index: str, request: Request) -> Candidates:
        """Both legs in one ``_msearch``.

        Their passages come with their codes; those of the span leg are put in the order of their
        best span, all scored.
        """
        hit_lists = self._msearch(index, self._leg_bodies(request))
        codes = (
            {}
            if _is_wide(request)
            else {
                key: token_codes
                for hits in hit_lists
                for key, token_codes in _codes_by_key(hits).items()
            }
        )
        lexical = (
            {passage_codec.hit_key(hit): hit["_score"] for hit in hit_lists.pop(0)}
            if request.lexical
            else {}
        )
        if not request.semantic:
            return Candidates(lexical, codes=codes)
        # Of passages of equal scores the first id comes first, not the first that the graph came
        # upon.
        keys = sorted(map(passage_codec.hit_key, hit_lists[0]), key=passage_codec.parse_passage_id)
        codes |= self._fetch_codes(index, keys) if _is_wide(request) else {}
        semantic = best_passages(request.vector, {key: codes[key] for key in keys}, request.window)
        return Candidates(lexical, semantic, f"HNSW, {len(keys)} passages scored exactly", codes)

    def complete_candidates(
        self,
        index: str,
        request: Request,
        keys: Sequence[Key],
        candidates: Candidates | None = None,
    ) -> list[StoredPassage]:
        """The passages of `keys` with BM25 and codes, in order: what `found` does not have, in one
        ``_msearch``; vanished ones left out.
        """
        is_lexical_complete = (
            candidates is not None and request.lexical and len(candidates.lexical) < request.window
        )  # what else is there does not match
        candidates = candidates or Candidates()
        scores: dict[str, float] = (dict.fromkeys(keys, 0.0) if is_lexical_complete else {}) | dict(
            candidates.lexical
        )
        codes: dict[str, TokenCodes] = {**candidates.codes, **candidates.semantic}
        for batch in _batches([key for key in keys if key not in scores or key not in codes]):
            unscored, uncoded = (
                [key for key in batch if key not in scores],
                [key for key in batch if key not in codes],
            )
            searches = (
                [request_bodies.match_body(request, len(unscored), among=unscored)]
                if unscored
                else []
            )
            hit_lists = self._msearch(
                index, searches + ([request_bodies.codes_body(uncoded)] if uncoded else [])
            )
            scores |= {
                passage_codec.hit_key(hit): hit["_score"]
                for hit in (hit_lists.pop(0) if unscored else [])
            }
            codes |= {
                key: token_codes
                for hits in hit_lists
                for key, token_codes in _codes_by_key(hits).items()
            }
        return [
            passage_codec.build_stored_passage(key, scores.get(key, 0.0), codes[key])
            for key in keys
            if key in codes
        ]

    def _fetch_codes(self, index: str, keys: Sequence[str]) -> dict[str, TokenCodes]:
        """The codes of many passages, some at a time."""
        hit_lists = (
            self._search(index, request_bodies.codes_body(batch))["hits"]["hits"]
            for batch in _batches(keys)
        )
        return {
            key: token_codes
            for hits in hit_lists
            for key, token_codes in _codes_by_key(hits).items()
        }

    def _leg_bodies(self, request: Request) -> list[dict[str, Any]]:
        """The searches for the candidates."""
        fields = request_bodies.KEYS if _is_wide(request) else request_bodies.CODES
        match_body = request_bodies.match_body(request, request.window, **fields)
        knn_body = request_bodies.knn_body(
            self.server.engine, request, max(CANDIDATES, request.window), **fields
        )
        return [
            leg
            for leg, is_enabled in ((match_body, request.lexical), (knn_body, request.semantic))
            if is_enabled
        ]

    def fetch_contents(self, index: str, keys: Sequence[Key]) -> dict[Key, PassageContent]:
        """What is shown of each passage of `keys` that is there."""
        hit_lists = (
            self._search(index, request_bodies.contents_body(batch))["hits"]["hits"]
            for batch in _batches(keys)
        )
        return {hit["_id"]: passage_codec.build_content(hit) for hits in hit_lists for hit in hits}

    def find_highlights(
        self, index: str, request: Request, keys: Sequence[Key]
    ) -> dict[Key, list[tuple[int, int]]]:
        """Start and end of the matching words of each passage of `keys` that has any."""
        hit_lists = (
            self._search(index, request_bodies.highlights_body(request, batch))["hits"]["hits"]
            for batch in _batches(keys)
        )
        return {
            hit["_id"]: passage_codec.read_highlights(hit)
            for hits in hit_lists
            for hit in hits
            if "highlight" in hit
        }

    def count_facets(
        self, index: str, request: Request, fields: Sequence[str]
    ) -> dict[str, dict[Scalar, int]]:
        """How many matching documents have each value of each field."""
        aggregations = self._search(index, request_bodies.facets_body(request, fields))[
            "aggregations"
        ]
        return {
            name: {
                _bucket_value(bucket): bucket["documents"]["value"]
                for bucket in aggregations[str(number)]["buckets"]
            }
            for number, name in enumerate(fields)
        }

    def fetch_hybrid_scores(
        self, index: str, request: Request, alpha: float, technique: str
    ) -> dict[Key, float] | None:
        """The scores of the server's own ``hybrid`` query; None where it has none."""
        if not self._has_hybrid():
            return None
        body = self._hybrid_body(request, alpha, technique, request.window, 0) | {"_source": False}
        return {hit["_id"]: hit["_score"] for hit in self._search(index, body)["hits"]["hits"]}

    def build_request_bodies(
        self,
        index: str,
        request: Request,
        alpha: float,
        technique: str | None,
        size: int,
        offset: int,
    ) -> list[tuple[str, dict[str, Any]]]:
        """Path and body of both legs, or by `technique` of the server's own ``hybrid`` query, as
        its Dev Tools take them.
        """
        path = f"/{quote(check_index_name(index))}/_search"
        if technique is not None:
            return [(path, self._hybrid_body(request, alpha, technique, size, offset))]
        return [(path, body) for body in self._leg_bodies(request)]

    def _hybrid_body(
        self, request: Request, alpha: float, technique: str, size: int, offset: int
    ) -> dict[str, Any]:
        if self.server.engine != "opensearch":
            raise UsageError(
                f"{self.server} is {self.server.engine}, whose own fusion this is not: leave compat out"
            )
        vector = passage_codec.round_vector(request.vector)
        return hybrid_body(
            request.phrase,
            vector,
            version=self.server.version,
            alpha=alpha,
            technique=technique,
            size=size,
            offset=offset,
            window=request.window,
            filter=request_bodies.knn_filters(self.server.engine, request),
        )

    def _has_hybrid(self) -> bool:
        if self._supports_hybrid is None:
            try:
                self._supports_hybrid = has_neural_search(self.server)
            except (
                AccessError
            ) as error:  # listing plugins is a privilege that searching does not need
                _log.info(
                    "whether %s has its own hybrid query cannot be seen: %s", self.server, error
                )
                self._supports_hybrid = False
        return self._supports_hybrid

    def drop_index(self, index: str) -> None:
        """Remove `index` and all in it, and its notes on refused documents.

        Raises IndexMissingError.
        """
        server_index = aliases.find_index(self.server, index)
        aliases.delete_index(self.server, server_index.name)
        aliases.delete_index(self.server, f"{index}{aliases.REJECTED}")

    def close(self) -> None:
        """Close the connections; the next call opens them again."""
        self.server.close()

    def _search(self, index: str, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return aliases.search(
                self.server,
                check_index_name(index),
                body,
                {"preference": self._preference, **aliases.COMPLETE_RESULTS},
            )
        except ServerError as error:
            raise self._translate_error(index, error) from error

    def _msearch(
        self, index: str, searches: Sequence[Mapping[str, Any]]
    ) -> list[list[dict[str, Any]]]:
        """The hits of several searches of `index`, in one round trip; tried again where the server
        was too busy for one of them.
        """
        if not searches:
            return []
        head = {
            "index": check_index_name(index),
            "preference": self._preference,
            **aliases.COMPLETE_RESULTS,
        }
        lines = [line for body in searches for line in (head, body)]

        def check(answer: Mapping[str, Any]) -> None:
            failed = next(
                (response for response in answer["responses"] if "error" in response), None
            )
            if failed is not None:
                raise ServerError(
                    f"{self.server} could not search {index!r}: {reason(failed)}",
                    int(failed.get("status", 500)),
                )

        try:
            answers = self.server.request(
                "POST", "/_msearch", lines=lines, binary=True, check=check
            )["responses"]
        except ServerError as error:
            raise self._translate_error(index, error) from error
        return [answer["hits"]["hits"] for answer in answers]

    def _translate_error(self, index: str, error: ServerError) -> HybridSearchError:
        """`error`, or what it says of the caller: that there is no such index, or that too much was
        asked at once.
        """
        if error.status == 404:
            return aliases.build_missing_error(self.server, index)
        if error.status == 400 and any(limit in str(error) for limit in LIMITS):
            return UsageError(
                f"that is too much to ask at once: {error}. Use a shorter phrase, or fewer values in where"
            )
        return error


def _batches(keys: Sequence[Key]) -> Iterator[list[Key]]:
    for start in range(0, len(keys), BATCH_PASSAGES):
        yield list(keys[start : start + BATCH_PASSAGES])


def _is_wide(request: Request) -> bool:
    """Whether so many candidates are asked for that all their codes would not do in one answer."""
    return request.window > BATCH_PASSAGES


def _codes_by_key(hits: Sequence[Mapping[str, Any]]) -> dict[Key, TokenCodes]:
    return {passage_codec.hit_key(hit): passage_codec.decode_codes(hit) for hit in hits}


def _bucket_value(bucket: Mapping[str, Any]) -> Scalar:
    """The value that a bucket counts: booleans are numbers to a server, and say so in words beside
    them.
    """
    if bucket.get("key_as_string") in ("true", "false"):
        return bool(bucket["key"])
    key: Scalar = bucket["key"]
    return int(key) if isinstance(key, float) and key.is_integer() else key
