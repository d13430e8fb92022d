"""Queries of an index of this project: both legs in one request, and what hits show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any

from hybrid_search.backends.index_names import check_index_name
from hybrid_search.backends.server import heads, passage_codec, request_bodies, scan
from hybrid_search.backends.server.leg_search import (
    LegSearch,
    cut_window,
    read_scores,
    score_spans,
)
from hybrid_search.backends.server.reach import BATCH_PASSAGES, is_wide
from hybrid_search.backends.server.request_bodies import split_batches
from hybrid_search.backends.server.searcher import Searcher
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
from hybrid_search.text.best_passages import BestPassages
from hybrid_search.text.filters import Scalar
from hybrid_search.text.word_codes import UNREADABLE


@dataclass(frozen=True, slots=True, eq=False)
class OwnSearch:
    """The searches of one index of this project, called `name`."""

    server: Server
    searcher: Searcher
    leg_search: LegSearch
    name: str

    def find(self, request: Request) -> FoundPassages:
        """Return the best passages of both legs, from one ``_msearch``.

        What that does not tell of a passage comes in one more for each batch, as do the word codes
        of a wide request.
        """
        proposals = self.leg_search.run(self.name, request)
        lexical = cut_window(list(proposals.bm25), request.window) if request.lexical else []
        hits = proposals.hits
        if request.semantic and is_wide(request):
            build_body = partial(request_bodies.codes_body, request)
            fetched = self.searcher.search_batches(self.name, list(hits), build_body)
            hits = {passage_codec.hit_key(hit): hit for hit in fetched}
        best = score_spans(request, hits, lexical) if request.semantic else BestPassages()
        others = dict.fromkeys(hits, 0.0) if proposals.has_all_matches else {}
        keys = list(dict.fromkeys([*lexical, *best.codes, *best.damaged]))
        passages = self.read_passages(request, keys, {**others, **proposals.bm25}, best)
        counted = f"HNSW, {len(hits)} passages scored exactly"
        return FoundPassages(passages, counted if request.semantic else "not asked")

    def read_passages(
        self,
        request: Request,
        keys: Sequence[Key],
        known_scores: Mapping[Key, float] = MappingProxyType({}),
        best: BestPassages | None = None,
    ) -> list[StoredPassage]:
        """Return the passages of `keys` that still exist, with BM25 scores and word codes.

        What `known_scores` and `best`, of the span leg, have is not fetched.
        """
        best = best or BestPassages()
        scores = dict(known_scores) if request.phrase else dict.fromkeys(keys, 0.0)
        codes = {**best.codes, **best.others, **dict.fromkeys(best.damaged, UNREADABLE)}
        unknown = [key for key in dict.fromkeys(keys) if key not in scores or key not in codes]
        for batch in split_batches(unknown, BATCH_PASSAGES):
            unscored = [key for key in batch if key not in scores]
            uncoded = [key for key in batch if key not in codes]
            bodies = {}
            if unscored:
                bodies["scores"] = request_bodies.match_body(request, len(unscored), among=unscored)
            if uncoded:
                bodies["codes"] = request_bodies.codes_body(request, uncoded)
            hits = self.searcher.search_together(self.name, bodies)
            scores |= read_scores(hits.get("scores", []))
            for hit in hits.get("codes", []):
                codes[passage_codec.hit_key(hit)] = passage_codec.decode_codes(hit)
        return [
            StoredPassage(
                key,
                *passage_codec.parse_passage_id(key),
                scores.get(key, 0.0),
                codes[key],
                best.cosines.get(key),
            )
            for key in keys
            if key in codes
        ]

    def fetch_contents(self, keys: Sequence[Key]) -> dict[Key, PassageContent]:
        """Return what a hit shows of each passage of `keys` that still exists."""
        hits = self.searcher.search_batches(self.name, keys, request_bodies.contents_body)
        return {hit["_id"]: passage_codec.build_content(hit) for hit in hits}

    def find_highlights(
        self, request: Request, keys: Sequence[Key]
    ) -> dict[Key, list[tuple[int, int]]]:
        """Return the start and end of the matching words of each passage of `keys` that has any."""
        build_body = partial(request_bodies.highlights_body, request)
        hits = self.searcher.search_batches(self.name, keys, build_body)
        return {
            hit["_id"]: passage_codec.read_highlights(hit) for hit in hits if "highlight" in hit
        }

    def count_facets(self, request: Request, fields: Sequence[str]) -> dict[str, dict[Scalar, int]]:
        """Return for each field how many matching documents have each value."""
        answer = self.searcher.search(self.name, request_bodies.facets_body(request, fields))
        return passage_codec.read_facets(answer["aggregations"], fields)

    def list_passages(self, document_id: str) -> list[Key]:
        """Return the passages of a document that searches see, in their order."""
        query = {"term": {"document_id": document_id}}
        return scan.list_keys(self.server, heads.find_index(self.server, self.name), query)

    def read_documents(self, ids: Sequence[str]) -> dict[str, dict[Key, PassageContent]]:
        """Return the contents of the passages of documents, in order, as far as they exist."""
        return scan.read_documents(self.server, heads.find_index(self.server, self.name), ids)

    def scan_codes(
        self, after: Position = None, written_since: datetime | None = None
    ) -> Iterator[ScannedPassage]:
        """Yield every passage that searches see, with its word codes."""
        server_index = heads.find_index(self.server, self.name)
        return scan.scan_codes(self.server, server_index, after, written_since)

    def build_bodies(self, request: Request) -> list[tuple[str, dict[str, Any]]]:
        """Return index and body of the searches of both legs."""
        name = check_index_name(self.name)
        return [(name, body) for body in self.leg_search.build_bodies(self.name, request)]
