"""Bytes on disk, against storing every span of 1..20 words inside its turn as float32."""

from __future__ import annotations

from typing import Any

from hybrid_search.client import Client
from hybrid_search.text import word_codes


def measure(client: Client, index: str) -> dict[str, Any]:
    """Return the bytes of an embedded index, in all and per 1,000 words.

    Also how many times smaller that is than all spans.
    """
    words = spans = codes = 0
    for scanned in client.backend.scan_codes(index):
        words += int((scanned.tokens.counts > 0).sum())
        spans += len(scanned.tokens.norms)
        codes += len(word_codes.to_bytes(scanned.tokens))
    info = client.describe(index)
    total = info.bytes or 0
    return {
        "documents": info.documents,
        "words": words,
        "spans of 1..20 words": spans,
        "covering spans": info.spans,
        "covering spans a word": round(info.spans / words, 3),
        "bytes": total,
        "of these word codes": codes,
        "bytes per 1,000 words": round(1000 * total / words),
        "all spans as float32, times as large": round(4 * info.spec.dimension * spans / total, 1),
    }
