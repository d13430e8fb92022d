"""Converts a passage to the document that a server stores, and reads hits, counts and facets."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

import numpy as np
import orjson
import pybase64

from hybrid_search.backends.server.graph_vectors import GraphVectors
from hybrid_search.backends.turn_layout import build_layout, read_speakers
from hybrid_search.backends.types import Head, IndexInfo, IndexSpec, PassageContent
from hybrid_search.errors import IndexStoreError
from hybrid_search.text import window_policy, word_codes
from hybrid_search.text.filters import Scalar, find_call_date, read_typed_values
from hybrid_search.text.languages import ENGLISH, find_language
from hybrid_search.text.types import Entry, WordCodes


def passage_id(document_id: str, ordinal: int) -> str:
    """Return the ``_id`` of a passage; it is deterministic, so sending twice stores it once."""
    return f"{document_id}#{ordinal}"


def parse_passage_id(id_: str) -> tuple[str, int]:
    """Return document id and ordinal from a passage's ``_id``."""
    document_id, _, ordinal = id_.rpartition("#")
    return document_id, int(ordinal)


def build_source(
    entry: Entry, spec: IndexSpec, written_at: str, graph: GraphVectors
) -> dict[str, Any]:
    """Return the server document of a passage; `written_at` is the time in ISO 8601."""
    passage, layout = entry.passage, build_layout(entry)
    turns = (f"{first}" if name is None else f"{first}:{name}" for first, name in entry.turns)
    return {
        "document_id": entry.document.id,
        "ordinal": passage.ordinal,
        "passages": entry.passages,
        "source_hash": entry.source_hash,
        "indexed_at": written_at,
        "start": passage.start,
        "end": passage.end,
        "text": entry.text,
        **name_texts(entry.document.metadata, entry.text),
        "metadata": entry.document.metadata,
        "layout": layout,
        **describe_metadata(entry.document.metadata, layout),
        "turn_speakers": list(turns),
        **derive_fields(entry.tokens, passage.start, spec.policy, entry.text, graph),
    }


def name_texts(metadata: Mapping[str, Any], text: str) -> dict[str, dict[str, str]]:
    """Return the text of a passage under its language, whose analyzer cuts it; of English none."""
    language = find_language(metadata, text)
    return {} if language == ENGLISH else {"texts": {language: text}}


def describe_metadata(metadata: Mapping[str, Any], layout: str) -> dict[str, Any]:
    """Return who speaks, the day of the call, and the instants and numbers that texts are."""
    day = find_call_date(metadata)
    forms: dict[str, dict[str, list[Scalar]]] = {}
    for name, form, value in read_typed_values(metadata):
        if form != "written":
            forms.setdefault(form, {}).setdefault(name, []).append(value)
    return {
        "speakers": sorted(set(read_speakers(layout))),
        **({"call_date": str(day)} if day else {}),
        **forms,
    }


def derive_fields(
    codes: WordCodes, start: int, policy: str, text: str | None, graph: GraphVectors
) -> dict[str, Any]:
    """Return the fields that follow from a passage's word codes: these, and its covering spans.

    Spans are of `policy`, placed in the document, whose passage begins at `start`. Without the
    passage's `text` theirs is left out.
    """
    windows = window_policy.window_bounds(codes.counts, policy)
    bounds = np.stack((codes.words[windows[:, 0], 0], codes.words[windows[:, 1], 1]), axis=1)
    vectors = graph.encode_windows(codes, policy)
    have_vectors = np.any(vectors, axis=1)  # no server takes those of spans without tokens
    spans = [
        {
            "start": first + start,
            "end": last + start,
            **({} if text is None else {"text": text[first:last]}),
            "vector": vector,
        }
        for (first, last), vector in zip(
            bounds[have_vectors].tolist(), vectors[have_vectors], strict=True
        )
    ]
    return {
        "tokens": pybase64.b64encode_as_string(word_codes.to_bytes(codes)),
        "span_count": len(spans),
        "spans": spans,
    }


def to_json(source: Mapping[str, Any]) -> bytes:
    """Return a document as one line of JSON, each number in the fewest digits that identify it."""
    return orjson.dumps(source, option=orjson.OPT_SERIALIZE_NUMPY)


def hit_key(hit: Mapping[str, Any]) -> str:
    """Return the ``_id`` of a hit of a search with `request_bodies.KEYS`."""
    return passage_id(hit["fields"]["document_id"][0], hit["fields"]["ordinal"][0])


def decode_codes(hit: Mapping[str, Any]) -> WordCodes:
    """Return the word codes of a hit, with its turns in order if it has their column.

    Where they are damaged, or were lost in a copy, they are `word_codes.UNREADABLE`.
    """
    codes = word_codes.read(read_stored_codes(hit))
    parts = [value.partition(":") for value in hit["fields"].get("turn_speakers", ())]
    turns = [(int(first), name if colon else None) for first, colon, name in parts]
    return replace(codes, turns=sorted(turns, key=itemgetter(0))) if turns else codes


def read_stored_codes(hit: Mapping[str, Any]) -> bytes:
    """Return the bytes of a hit's word codes, empty if they are no base64 or missing."""
    # a server gives base64 without padding
    encoded = (hit["fields"].get("tokens") or [""])[0]
    try:
        return pybase64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        return b""


def build_content(hit: Mapping[str, Any]) -> PassageContent:
    """Return what a hit shows of a passage."""
    source = hit["_source"]
    metadata = json.dumps(source.get("metadata", {}), ensure_ascii=False)
    return PassageContent(source["start"], source["text"], source["layout"], metadata)


def read_highlights(hit: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return start and end of the words marked in a hit's text; IndexStoreError if in another."""
    # of a passage in another language, its own field comes behind "text"
    (marked_text,), text = hit["highlight"][max(hit["highlight"])], hit["_source"]["text"]
    # OpenSearch strips the blanks before a text that it has marked
    start = text.find(marked_text.replace(OPEN, "").replace(CLOSE, ""))
    if start < 0:
        raise IndexStoreError(
            f"the server marked the matching words of passage {hit['_id']!r} in another text than "
            "the passage has: query without highlight, and check the index with hybrid-search "
            "verify"
        )
    ranges = []
    for part in marked_text.split(OPEN):
        word, close, text_after = part.partition(CLOSE)
        if close:
            ranges.append((start, start + len(word)))
        start += len(word) + len(text_after)
    return ranges


OPEN, CLOSE = (f"\ue000{secrets.token_hex(8)}{side}" for side in "([")
"""The markers before and after a matching word, which no text contains by chance."""


def read_counts(answer: Mapping[str, Any], head: Head, size: int | None = None) -> IndexInfo:
    """Return how much is in an index of `size` bytes; the search is `request_bodies.COUNTS`."""
    counts, passages = answer["aggregations"], answer["hits"]["total"]["value"]
    documents, spans = counts["documents"]["doc_count"], int(counts["spans"]["value"])
    milliseconds = counts["written_at"]["value"]
    written_at = datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
    return IndexInfo(*head, documents, passages, spans, size, written_at)


def read_facets(
    aggregations: Mapping[str, Any], fields: Sequence[str]
) -> dict[str, dict[Scalar, int]]:
    """Return for each field how many documents have each value."""
    buckets = {name: aggregations[str(number)]["buckets"] for number, name in enumerate(fields)}
    return {
        name: {_bucket_value(bucket): bucket["documents"]["value"] for bucket in own}
        for name, own in buckets.items()
    }


def _bucket_value(bucket: Mapping[str, Any]) -> Scalar:
    # to a server booleans are numbers, and a string beside them says which they are
    if bucket.get("key_as_string") in ("true", "false"):
        return bool(bucket["key"])
    key: Scalar = bucket["key"]
    return int(key) if isinstance(key, float) and key.is_integer() else key
