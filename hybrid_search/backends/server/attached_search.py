"""Queries of an attached index: its own BM25, the spans of its sidecar, joined by document.

Both are asked by the login of whoever asks, and only what the index itself shows to that login goes
on: passages of other documents are dropped before they are scored. A passage counts if it was made
from the version of its document that the index has now. A document without such passages is found
by its words alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from hybrid_search.backends.base import find_highlights
from hybrid_search.backends.server import (
    attached_contents,
    heads,
    passage_codec,
    request_bodies,
    scan,
)
from hybrid_search.backends.server.attachment import Attachment, Version, hash_text
from hybrid_search.backends.server.head_cache import PROBE, HeadCache
from hybrid_search.backends.server.heads import ServerIndex
from hybrid_search.backends.server.leg_search import LegSearch, score_spans
from hybrid_search.backends.server.reach import Reach, is_wide
from hybrid_search.backends.server.searcher import Hits, Searcher
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.types import (
    FoundPassages,
    Key,
    PassageContent,
    Position,
    Request,
    ScannedPassage,
    StoredPassage,
)
from hybrid_search.errors import UsageError
from hybrid_search.text.filters import ID, Condition, Scalar
from hybrid_search.text.types import Floats, WordCodes
from hybrid_search.text.word_codes import UNREADABLE, WORDLESS

MOST_LISTED = 10_000
"""The most documents that the graphs are searched among: servers list no more at once."""

NO_COSINES: Floats = np.zeros(0, np.float32)


@dataclass(frozen=True, slots=True)
class Visible:
    """A document that the index shows: its score for the phrase, and its versions.

    An id may be in several of the indexes behind a name; then it has several versions.
    """

    score: float
    versions: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Proposed:
    """The visible documents that both legs propose, and their passages by key.

    `hidden` is how many other documents there were.
    """

    documents: Mapping[str, Visible]
    hits: Mapping[Key, Mapping[str, Any]]
    hidden: int


@dataclass(frozen=True, slots=True, eq=False)
class AttachedSearch:
    """The searches of one attached index, called `name`, whose sidecar is `head`."""

    server: Server
    searcher: Searcher
    leg_search: LegSearch
    head_cache: HeadCache
    name: str
    head: ServerIndex
    attachment: Attachment

    def find(self, request: Request) -> FoundPassages:
        """Return the best passages of both legs, of documents that this login may see."""
        lexical = self._match_best(request) if request.lexical else {}
        is_narrow = bool(request.conditions or request.filter)
        among = self._list_matching(request) if is_narrow else None
        proposed = self._propose(request, lexical, among)
        if among is None and proposed.hidden and len(proposed.documents) < request.window:
            among = self._list_matching(request)
            if among is not None:
                proposed = self._propose(request, lexical, among)
        return _score(request, proposed, lexical)

    def read_passages(self, request: Request, keys: Sequence[Key]) -> list[StoredPassage]:
        """Return the passages of `keys` in order, each with the score of its document."""
        documents = self._match(request, {passage_codec.parse_passage_id(key)[0] for key in keys})
        build_body = partial(request_bodies.codes_body, _build_sidecar_request(request))
        hits = self.searcher.search_batches(self.head.alias, keys, build_body)
        codes = {passage_codec.hit_key(hit): passage_codec.decode_codes(hit) for hit in hits}
        return [
            _build_passage(key, documents, codes[key])
            for key in keys
            if key in codes and passage_codec.parse_passage_id(key)[0] in documents
        ]

    def fetch_contents(self, keys: Sequence[Key]) -> dict[Key, PassageContent]:
        """Return what a hit shows of each passage, cut from the document as it is now.

        A passage whose text has changed has a fault. Of documents that this login may not see there
        is none.
        """
        ids = sorted({passage_codec.parse_passage_id(key)[0] for key in keys})
        documents: dict[str, list[Mapping[str, Any]]] = {}
        for hit in self._fetch(ids, source=True):
            documents.setdefault(hit["_id"], []).append(hit)
        passages = {
            passage_codec.hit_key(hit): hit
            for hit in self.searcher.search_batches(
                self.head.alias, keys, attached_contents.build_places_body
            )
        }
        return attached_contents.cut_passages(self.attachment, keys, documents, passages)

    def list_passages(self, document_id: str) -> list[Key]:
        """Return the passages of a document that this login may see, in their order."""
        if not self._fetch([document_id], source=False):
            return []
        query = {"term": {"document_id": document_id}}
        return scan.list_keys(self.server, self.head, query)

    def read_documents(self, ids: Sequence[str]) -> dict[str, dict[Key, PassageContent]]:
        """Return the contents of the passages of documents, in order, as far as they exist."""
        lists = ((id_, self.list_passages(id_)) for id_ in ids)
        return {id_: self.fetch_contents(keys) for id_, keys in lists if keys}

    def find_highlights(
        self, request: Request, keys: Sequence[Key]
    ) -> dict[Key, list[tuple[int, int]]]:
        """Return the words that are those of the phrase: the index may have any analyzer."""
        return find_highlights(self.fetch_contents(keys), request)

    def count_facets(self, request: Request, fields: Sequence[str]) -> dict[str, dict[Scalar, int]]:
        """Raise UsageError: the matches of the index itself are not counted."""
        del request, fields
        raise UsageError(
            f"{self.attachment.index!r} is attached, and its matches are not counted: use facets "
            "over the window"
        )

    def scan_codes(
        self, after: Position = None, written_since: datetime | None = None
    ) -> Iterator[ScannedPassage]:
        """Yield the passages of documents that this login may see, with their word codes."""
        head = heads.find_index(self.server, self.name)
        passages = scan.scan_codes(self.server, head, after, written_since)
        while batch := list(islice(passages, scan.PAGE_CODES)):
            ids = sorted({passage.document_id for passage in batch})
            visible = {hit["_id"] for hit in self._fetch(ids, source=False)}
            yield from (passage for passage in batch if passage.document_id in visible)

    def build_bodies(self, request: Request) -> list[tuple[str, dict[str, Any]]]:
        """Return index and body of the searches of both legs."""
        words = (self.attachment.index, self._build_words_body(request))
        graph = self.leg_search.build_bodies(self.name, _build_sidecar_request(request))
        legs = [words] if request.lexical else []
        return [*legs, *((self.head.alias, body) for body in graph if request.semantic)]

    def _ask(self, body: Mapping[str, Any]) -> Hits:
        return self.searcher.search_together(self.attachment.index, {"documents": body})[
            "documents"
        ]

    def _fetch(self, ids: Sequence[str], *, source: bool) -> Hits:
        """Return the documents of `ids` that the index shows to this login."""
        hits: Hits = []
        for batch in request_bodies.split_batches(ids, MOST_LISTED // 2):
            query = {"ids": {"values": batch}}
            hits += self._ask({**_build_body(query, 2 * len(batch)), "_source": source})
        return hits

    def _build_words_body(self, request: Request) -> dict[str, Any]:
        words = self.attachment.build_match(request.phrase)
        query = {"must": [words], "filter": self.attachment.build_filters(request)}
        return _build_body({"bool": query}, request.window)

    def _match_best(self, request: Request) -> dict[str, Visible]:
        """Return the best documents by BM25, best first."""
        return _read_documents(self._ask(self._build_words_body(request)))

    def _match(self, request: Request, ids: Iterable[str]) -> dict[str, Visible]:
        """Return those of `ids` that this login may see and that fulfil the conditions."""
        documents: dict[str, Visible] = {}
        words = [self.attachment.build_match(request.phrase)] if request.phrase else []
        for batch in request_bodies.split_batches(sorted(ids), MOST_LISTED // 2):
            filters = [{"ids": {"values": batch}}, *self.attachment.build_filters(request)]
            # without a minimum of 0 only documents with a word of the phrase would match
            query = {"filter": filters, "should": words, "minimum_should_match": 0}
            documents |= _read_documents(self._ask(_build_body({"bool": query}, 2 * len(batch))))
        return documents

    def _list_matching(self, request: Request) -> list[str] | None:
        """Return the visible documents that fulfil the conditions; None if they are too many."""
        query = {"bool": {"filter": self.attachment.build_filters(request)}}
        hits = self._ask(_build_body(query, MOST_LISTED))
        return sorted({hit["_id"] for hit in hits}) if len(hits) < MOST_LISTED else None

    def _propose(
        self, request: Request, lexical: Mapping[str, Visible], among: Sequence[str] | None
    ) -> Proposed:
        """Return what both legs propose, the graphs `among` these documents or all."""
        hits: dict[Key, Mapping[str, Any]] = {}
        if request.semantic and among != []:
            of_sidecar = _build_sidecar_request(request, among)
            hits |= self.leg_search.run(self.name, of_sidecar).hits
        found = {passage_codec.parse_passage_id(key)[0] for key in hits}
        documents = {**lexical, **self._match(request, found - lexical.keys())}
        hits |= self._find_passages(request, sorted(lexical.keys() - found))
        current = {key: hit for key, hit in hits.items() if _is_current(key, hit, documents)}
        if is_wide(request):
            build_body = partial(request_bodies.codes_body, _build_sidecar_request(request))
            fetched = self.searcher.search_batches(self.head.alias, list(current), build_body)
            current = {passage_codec.hit_key(hit): hit for hit in fetched}
        return Proposed(documents, current, len(found - documents.keys()))

    def _find_passages(self, request: Request, ids: Sequence[str]) -> dict[Key, Mapping[str, Any]]:
        """Return the passage of each of `ids` that has the nearest covering window."""
        if not ids:
            return {}
        of_sidecar = _build_sidecar_request(request, ids)
        body = request_bodies.knn_body(
            self.server.engine,
            of_sidecar,
            Reach(0, len(ids), MOST_LISTED),
            self.head,
            (),
            one_each=True,
            **request_bodies.choose_hit_fields(of_sidecar, self.head),
        )
        bodies = {"nearest": body, "probe": PROBE}
        answer = self.searcher.search_together(self.head.alias, bodies)
        self.head_cache.check(self.name, answer["probe"])
        return {passage_codec.hit_key(hit): hit for hit in answer["nearest"]}


def _build_sidecar_request(request: Request, among: Sequence[str] | None = None) -> Request:
    """Return the request that a sidecar can answer: `among` these documents, of any metadata."""
    conditions = () if among is None else (Condition(ID, tuple(among)),)
    span_filter = request.span_filter
    if span_filter:
        names = tuple(map(hash_text, span_filter.speakers))
        span_filter = replace(span_filter, speakers=names)
    return replace(
        request,
        lexical=False,
        semantic=True,
        conditions=conditions,
        filter=None,
        span_filter=span_filter,
    )


def _build_body(query: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Return a search of an index of another program."""
    return {
        "query": query,
        "size": min(size, MOST_LISTED),
        "_source": False,
        "seq_no_primary_term": True,
        "track_total_hits": False,
    }


def _read_documents(hits: Hits) -> dict[str, Visible]:
    documents: dict[str, Visible] = {}
    for hit in hits:
        earlier = documents.get(hit["_id"], Visible(0.0, frozenset()))
        score = max(earlier.score, hit.get("_score") or 0.0)
        version = str(Version.from_hit(hit))
        documents[hit["_id"]] = Visible(score, earlier.versions | {version})
    return documents


def _read_version(hit: Mapping[str, Any]) -> str:
    (version,) = hit["fields"].get("source_version", [""])
    return str(version)


def _score(request: Request, proposed: Proposed, lexical: Mapping[str, Visible]) -> FoundPassages:
    """Return the passages of the best documents by BM25, and those of the best spans."""
    by_document: dict[str, list[Key]] = {}
    for key in proposed.hits:
        by_document.setdefault(passage_codec.parse_passage_id(key)[0], []).append(key)
    own = [key for id_ in lexical for key in by_document.get(id_, ())]
    best = score_spans(_build_sidecar_request(request), proposed.hits, own)
    codes = {**best.codes, **best.others, **dict.fromkeys(best.damaged, UNREADABLE)}
    keys = [*own, *(best.codes if request.semantic else ()), *best.damaged]
    found = [
        _build_passage(key, proposed.documents, codes[key], best.cosines.get(key))
        for key in dict.fromkeys(keys)
        if key in codes
    ]
    words_alone = [
        _build_passage(attached_contents.build_whole_key(id_), lexical, WORDLESS, NO_COSINES)
        for id_ in lexical
        if id_ not in by_document
    ]
    counted = f"HNSW, {len(proposed.hits)} passages scored exactly"
    method = counted if request.semantic else "not asked"
    return FoundPassages([*found, *words_alone], method)


def _is_current(key: Key, hit: Mapping[str, Any], documents: Mapping[str, Visible]) -> bool:
    """Return whether a passage was made from a version of its document that is visible."""
    document = documents.get(passage_codec.parse_passage_id(key)[0])
    return document is not None and _read_version(hit) in document.versions


def _build_passage(
    key: Key,
    documents: Mapping[str, Visible],
    codes: WordCodes,
    cosines: Floats | None = None,
) -> StoredPassage:
    id_, ordinal = passage_codec.parse_passage_id(key)
    return StoredPassage(key, id_, max(0, ordinal), documents[id_].score, codes, cosines)
