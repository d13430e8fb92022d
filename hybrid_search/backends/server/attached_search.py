"""Queries of an attached index: its own BM25, the spans of its sidecar, joined by document.

Both are asked by the login of whoever asks, and only what the index itself shows to that login goes
on: passages of other documents are dropped before they are scored. A passage counts if it was made
from the version of its document that the index has now. A document without such passages is found
by its words alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hybrid_search.backends.server import passage_codec, request_bodies
from hybrid_search.backends.server.aliases import ServerIndex
from hybrid_search.backends.server.attachment import SourceText, Version, hash_text
from hybrid_search.backends.server.head_cache import PROBE, HeadCache
from hybrid_search.backends.server.leg_search import LegSearch, score_spans
from hybrid_search.backends.server.reach import Reach, is_wide
from hybrid_search.backends.server.searcher import Hits, Searcher
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.types import (
    Fault,
    FoundPassages,
    Key,
    PassageContent,
    Request,
    StoredPassage,
)
from hybrid_search.text.best_passages import BestPassages
from hybrid_search.text.filters import ID, Condition
from hybrid_search.text.types import Floats, WordCodes
from hybrid_search.text.word_codes import UNREADABLE, WORDLESS

MOST_LISTED = 10_000
"""The most documents that the graphs are searched among: servers list no more at once."""

WORDS_ALONE = -1
"""The ordinal, in a key, of a document that is found by its words alone."""

SHOWN_CHARACTERS = 500
"""How much of its text is shown then."""

NO_COSINES: Floats = np.zeros(0, np.float32)
OUTDATED = Fault("outdated", "its text has changed since the last sync")

CONTENT_COLUMNS = ["document_id", "ordinal", "end", "source_version", "text_hash"]


@dataclass(frozen=True, slots=True)
class Visible:
    """A document that the index shows: its score for the phrase, and its versions.

    An id may be in several of the indexes behind a name; then it has several versions.
    """

    score: float
    versions: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Proposed:
    """The documents that both legs propose and that are visible, and their passages by key.

    `hidden` is how many other documents there were.
    """

    documents: Mapping[str, Visible]
    hits: Mapping[Key, Mapping[str, Any]]
    hidden: int


class AttachedSearch:
    """Searches attached indexes on one cluster. Safe to use from several threads."""

    def __init__(
        self, server: Server, searcher: Searcher, heads: HeadCache, leg_search: LegSearch
    ) -> None:
        self._server = server
        self._searcher, self._heads, self._leg_search = searcher, heads, leg_search

    def find(self, index: str, request: Request) -> FoundPassages:
        """Return the best passages of both legs."""
        search = _Search(self._searcher, self._leg_search, self._heads, index, request)
        return search.find(self._server.engine)

    def list_visible(self, head: ServerIndex, ids: Sequence[str]) -> set[str]:
        """Return those of `ids` that the index shows to this login."""
        hits = self._fetch(head, ids, source=False)
        return {hit["_id"] for hit in hits}

    def read_passages(
        self, index: str, request: Request, keys: Sequence[Key]
    ) -> list[StoredPassage]:
        """Return the passages of `keys` in order, each with the score of its document."""
        head = self._heads.find(index)
        search = _Search(self._searcher, self._leg_search, self._heads, index, request)
        documents = search.match({passage_codec.parse_passage_id(key)[0] for key in keys})
        hits = self._searcher.search_batches(
            head.alias, keys, partial(request_bodies.codes_body, search.of_sidecar)
        )
        codes = {passage_codec.hit_key(hit): passage_codec.decode_codes(hit) for hit in hits}
        places = ((key, *passage_codec.parse_passage_id(key)) for key in keys if key in codes)
        return [
            StoredPassage(key, id_, ordinal, documents[id_].score, codes[key])
            for key, id_, ordinal in places
            if id_ in documents
        ]

    def fetch_contents(self, index: str, keys: Sequence[Key]) -> dict[Key, PassageContent]:
        """Return what a hit shows of each passage, cut from the document as it is now.

        A passage whose text has changed has a fault. Of documents that this login may not see there
        is none.
        """
        head = self._heads.find(index)
        places = {key: passage_codec.parse_passage_id(key) for key in keys}
        sources: dict[str, list[Mapping[str, Any]]] = {}
        for hit in self._fetch(head, sorted({id_ for id_, _ in places.values()}), source=True):
            sources.setdefault(hit["_id"], []).append(hit)
        passages = {
            passage_codec.hit_key(hit): hit
            for hit in self._searcher.search_batches(head.alias, keys, _build_contents_body)
        }
        contents: dict[Key, PassageContent] = {}
        for key, (id_, ordinal) in places.items():
            hits = sources.get(id_, [])
            content = None
            if ordinal == WORDS_ALONE and hits:
                content = _show_beginning(head, max(hits, key=Version.from_hit))
            elif key in passages and hits:
                content = _cut_passage(head, passages[key], hits)
            if content:
                contents[key] = content
        return contents

    def _fetch(self, head: ServerIndex, ids: Sequence[str], *, source: bool) -> Hits:
        """Return the documents of `ids` that the index shows to this login."""
        assert head.attachment
        hits: Hits = []
        for batch in request_bodies.split_batches(ids, MOST_LISTED // 2):
            body = {**_list_body(2 * len(batch)), "query": {"ids": {"values": batch}}}
            body["_source"] = source
            hits += self._searcher.search_together(head.attachment.index, {"documents": body})[
                "documents"
            ]
        return hits


class _Search:
    """The search of an attached index for one request."""

    def __init__(
        self,
        searcher: Searcher,
        leg_search: LegSearch,
        heads: HeadCache,
        index: str,
        request: Request,
    ) -> None:
        head = heads.find(index)
        assert head.attachment
        self._searcher, self._leg_search, self._heads = searcher, leg_search, heads
        self._index, self._head, self._attachment = index, head, head.attachment
        self._request = request
        span_filter = request.span_filter and replace(
            request.span_filter, speakers=tuple(map(hash_text, request.speakers))
        )
        self.of_sidecar = replace(
            request, lexical=False, conditions=(), filter=None, span_filter=span_filter
        )

    def find(self, engine: str) -> FoundPassages:
        """Return the best passages of both legs, of documents that this login may see."""
        request = self._request
        lexical = self._match_best() if request.lexical else {}
        is_narrow = bool(request.conditions or request.filter)
        among = self._list_matching() if is_narrow else None
        proposed = self._propose(engine, lexical, among)
        if among is None and proposed.hidden and len(proposed.documents) < request.window:
            among = self._list_matching()
            if among is not None:
                proposed = self._propose(engine, lexical, among)
        return self._score(proposed, lexical)

    def _match_best(self) -> dict[str, Visible]:
        """Return the best documents by BM25, best first."""
        query = {
            "bool": {
                "must": [self._attachment.build_match(self._request.phrase)],
                "filter": self._attachment.build_filters(self._request),
            }
        }
        body = {**_list_body(self._request.window), "query": query}
        return _read_documents(self._ask({"words": body})["words"])

    def match(self, ids: Iterable[str]) -> dict[str, Visible]:
        """Return those of `ids` that this login may see and that fulfil the conditions."""
        documents: dict[str, Visible] = {}
        for batch in request_bodies.split_batches(sorted(ids), MOST_LISTED // 2):
            filters = [{"ids": {"values": batch}}, *self._attachment.build_filters(self._request)]
            words = self._attachment.build_match(self._request.phrase)
            query = {"bool": {"filter": filters, "should": [words]}}
            body = {**_list_body(2 * len(batch)), "query": query}
            documents |= _read_documents(self._ask({"documents": body})["documents"])
        return documents

    def _list_matching(self) -> list[str] | None:
        """Return the visible documents that fulfil the conditions; None if they are too many."""
        query = {"bool": {"filter": self._attachment.build_filters(self._request)}}
        body = {**_list_body(MOST_LISTED), "query": query}
        hits = self._ask({"all": body})["all"]
        return sorted({hit["_id"] for hit in hits}) if len(hits) < MOST_LISTED else None

    def _ask(self, bodies: Mapping[str, Mapping[str, Any]]) -> dict[str, Hits]:
        return self._searcher.search_together(self._attachment.index, bodies)

    def _propose(
        self, engine: str, lexical: Mapping[str, Visible], among: Sequence[str] | None
    ) -> Proposed:
        """Return what both legs propose, the graphs `among` these documents or all."""
        hits: dict[Key, Mapping[str, Any]] = {}
        if self._request.semantic and among != []:
            request = self.of_sidecar
            if among is not None:
                request = replace(request, conditions=(Condition(ID, tuple(among)),))
            hits |= self._leg_search.run(self._index, request).hits
        found = {passage_codec.parse_passage_id(key)[0] for key in hits}
        documents = {**lexical, **self.match(found - lexical.keys())}
        hits |= self._find_passages(engine, sorted(lexical.keys() - found))
        current = {
            key: hit
            for key, hit in hits.items()
            if (document := documents.get(passage_codec.parse_passage_id(key)[0]))
            and _read_version(hit) in document.versions
        }
        if is_wide(self._request):
            current = self._add_codes(current)
        return Proposed(documents, current, len(found - documents.keys()))

    def _find_passages(self, engine: str, ids: Sequence[str]) -> dict[Key, Mapping[str, Any]]:
        """Return the passage of each of `ids` that has the nearest covering window."""
        if not ids:
            return {}
        request = replace(self.of_sidecar, conditions=(Condition(ID, tuple(ids)),))
        reach = Reach(0, len(ids), MOST_LISTED)
        has_codes = not is_wide(request)
        fields = request_bodies.choose_code_fields(request) if has_codes else request_bodies.KEYS
        fields = request_bodies.add_columns(fields, ["source_version"])
        body = request_bodies.knn_body(
            engine, request, reach, self._head, (), one_each=True, **fields
        )
        bodies = {"nearest": body, "probe": PROBE}
        answer = self._searcher.search_together(self._head.alias, bodies)
        self._heads.check(self._index, answer["probe"])
        return {passage_codec.hit_key(hit): hit for hit in answer["nearest"]}

    def _add_codes(self, hits: Mapping[Key, Any]) -> dict[Key, Mapping[str, Any]]:
        build_body = partial(request_bodies.codes_body, self.of_sidecar)
        fetched = self._searcher.search_batches(self._head.alias, list(hits), build_body)
        return {passage_codec.hit_key(hit): hit for hit in fetched}

    def _score(self, proposed: Proposed, lexical: Mapping[str, Visible]) -> FoundPassages:
        """Return the passages of the best documents by BM25, and those of the best spans."""
        by_document: dict[str, list[Key]] = {}
        for key in proposed.hits:
            by_document.setdefault(passage_codec.parse_passage_id(key)[0], []).append(key)
        own = [key for id_ in lexical for key in by_document.get(id_, ())]
        best = score_spans(self.of_sidecar, proposed.hits, own)
        spans_leg = best if self._request.semantic else BestPassages()
        codes = {**best.codes, **best.others, **dict.fromkeys(best.damaged, UNREADABLE)}
        found = [
            self._build(key, proposed.documents, codes[key], best.cosines.get(key))
            for key in dict.fromkeys([*own, *spans_leg.codes, *best.damaged])
            if key in codes
        ]
        without = [
            self._build(passage_codec.passage_id(id_, WORDS_ALONE), lexical, WORDLESS, NO_COSINES)
            for id_ in lexical
            if id_ not in by_document
        ]
        counted = f"HNSW, {len(proposed.hits)} passages scored exactly"
        method = counted if self._request.semantic else "not asked"
        return FoundPassages([*found, *without], method)

    def _build(
        self, key: Key, documents: Mapping[str, Visible], codes: WordCodes, cosines: Floats | None
    ) -> StoredPassage:
        id_, ordinal = passage_codec.parse_passage_id(key)
        return StoredPassage(key, id_, max(0, ordinal), documents[id_].score, codes, cosines)


def _list_body(size: int) -> dict[str, Any]:
    """Return a search of an index of another program, without its query."""
    return {
        "size": min(size, MOST_LISTED),
        "_source": False,
        "seq_no_primary_term": True,
        "track_total_hits": False,
    }


def _build_contents_body(keys: Sequence[Key]) -> dict[str, Any]:
    """Return the search for the places of passages."""
    return {
        **request_bodies.contents_body(list(keys)),
        "_source": ["start", "layout"],
        "docvalue_fields": CONTENT_COLUMNS,
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


def _cut_passage(
    head: ServerIndex, passage: Mapping[str, Any], hits: Sequence[Mapping[str, Any]]
) -> PassageContent | None:
    """Return a passage cut from its document, of which there may be several by this id."""
    assert head.attachment
    start, columns = passage["_source"]["start"], passage["fields"]
    (end,), text_hashes = columns["end"], columns.get("text_hash", ())
    readable = False
    for hit in hits:
        read = head.attachment.read_text(hit.get("_source", {}))
        readable |= read is not None
        if read and hash_text(read.text[start:end]) in text_hashes:
            layout = json.loads(passage["_source"]["layout"])
            metadata = head.attachment.read_metadata(hit["_source"])
            return _build_content(read, start, end, layout, metadata)
    return PassageContent(start, "", "[]", "{}", OUTDATED) if readable else None


def _show_beginning(head: ServerIndex, hit: Mapping[str, Any]) -> PassageContent | None:
    """Return the first words of a document that is found by its words alone."""
    assert head.attachment
    source = hit.get("_source", {})
    read = head.attachment.read_text(source)
    metadata = head.attachment.read_metadata(source)
    return read and _build_content(read, 0, SHOWN_CHARACTERS, [], metadata)


def _build_content(
    read: SourceText, start: int, end: int, layout: list[Any], metadata: Mapping[str, Any]
) -> PassageContent:
    turns = [
        {**turn, **({"speaker": name} if (name := read.speakers[turn["turn"]]) else {})}
        for turn in layout
    ]
    described = (json.dumps(value, ensure_ascii=False) for value in (turns, metadata))
    return PassageContent(start, read.text[start:end], *described)
