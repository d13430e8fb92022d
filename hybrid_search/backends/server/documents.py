"""A passage as a server stores it, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
import pybase64

from hybrid_search import covering, tokens
from hybrid_search.backends.base import Content, IndexSpec, Stored
from hybrid_search.backends.layout import layout
from hybrid_search.backends.marks import places, unmarked
from hybrid_search.errors import IndexStoreError
from hybrid_search.types import Entry, Floats, TokenCodes

DECIMALS = 5
"""Of a vector's numbers: a third of the bytes of all digits. They only have to find passages, whose scores are computed from the token codes."""


def passage_id(document_id: str, ordinal: int) -> str:
    """The ``_id`` of a passage: deterministic, so that whatever is sent twice is there once."""
    return f"{document_id}#{ordinal}"


def place(id_: str) -> tuple[str, int]:
    """Document id and ordinal of a passage's ``_id``."""
    document_id, _, ordinal = id_.rpartition("#")
    return document_id, int(ordinal)


def source(entry: Entry, spec: IndexSpec, written: str) -> dict[str, Any]:
    """The server document of a passage; `written` is the time of writing, in ISO 8601."""
    passage = entry.passage
    return {
        "document_id": entry.document.id,
        "ordinal": passage.ordinal,
        "passages": entry.passages,
        "source_hash": entry.source_hash,
        "indexed_at": written,
        "start": passage.start,
        "end": passage.end,
        "text": entry.text,
        "metadata": entry.document.metadata,
        "layout": layout(entry),
        **derived(entry.tokens, passage.start, spec.policy),
    }


def derived(coded: TokenCodes, start: int, policy: str) -> dict[str, Any]:
    """The fields that follow from a passage's token codes: the codes themselves, and the covering spans of `policy` with their vectors."""
    spans = nested(coded, start, policy)
    return {"tokens": pybase64.b64encode_as_string(tokens.to_bytes(coded)), "span_count": len(spans), "spans": spans}


def nested(coded: TokenCodes, start: int, policy: str) -> list[dict[str, Any]]:
    """The covering spans: start and end in the document, and the unit vector. One without tokens has none, which no server takes: left out."""
    chosen, vectors = covering.bounds(coded.counts, policy), covering.cover(coded, policy)
    starts, ends = coded.words[chosen[:, 0], 0] + start, coded.words[chosen[:, 1], 1] + start
    rows = zip(starts.tolist(), ends.tolist(), np.any(vectors, axis=1).tolist(), np.round(vectors, DECIMALS), strict=True)
    return [{"start": first, "end": last, "vector": vector} for first, last, some, vector in rows if some]


def to_json(source: Mapping[str, Any]) -> bytes:
    """A server document on one line. Each number of a vector, float32 ``[dimension]``, is written in the fewest digits that say it."""
    return orjson.dumps(source, option=orjson.OPT_SERIALIZE_NUMPY)


def rounded(vector: Floats) -> list[float]:
    """The vector of a query as JSON has it, to `DECIMALS` places."""
    found: list[float] = np.round(vector.astype(np.float64), DECIMALS).tolist()
    return found


def key(hit: Mapping[str, Any]) -> str:
    """The ``_id`` of a hit of `bodies.KEYS`."""
    return passage_id(hit["fields"]["document_id"][0], hit["fields"]["ordinal"][0])


def codes(hit: Mapping[str, Any]) -> TokenCodes:
    """The token codes of a hit of `bodies.CODES`: base64 without padding. Raises IndexStoreError where it has none."""
    held = hit["fields"].get("tokens")
    if not held:
        raise IndexStoreError(f"passage {key(hit)!r} has lost its token codes (was the index copied without them?): ingest its document again")
    return tokens.from_bytes(pybase64.b64decode(held[0] + "=" * (-len(held[0]) % 4), validate=True))


def stored(id_: str, bm25: float, coded: TokenCodes) -> Stored:
    """What a score is made of."""
    return Stored(id_, *place(id_), bm25, coded)


def content(hit: Mapping[str, Any]) -> Content:
    """What is shown of a hit."""
    held = hit["_source"]
    return Content(held["start"], held["text"], held["layout"], json.dumps(held.get("metadata", {}), ensure_ascii=False))


def highlighted(hit: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Start and end, in the passage's text, of the words that a hit of `bodies.highlights` has marked."""
    marked = hit["highlight"]["text"][0]
    trimmed = hit["_source"]["text"].index(unmarked(marked))  # OpenSearch cuts blanks off before a text that it has marked
    return [(start + trimmed, end + trimmed) for start, end in places(marked)]
