"""A digest of the settings of an index, which the source hash of each document ends with."""

from __future__ import annotations

import hashlib

from hybrid_search.backends.types import IndexSpec
from hybrid_search.text import passages, spans


def settings_digest(spec: IndexSpec) -> str:
    """Return a digest of everything, besides the document, that its index entry is made by."""
    settings = (
        spec.fingerprint,
        spec.policy,
        spec.codebook,
        spec.codes,
        spec.schema,
        passages.PASSAGE_WORDS,
        passages.WINDOW_WORDS,
        spans.MAX_WORDS,
    )
    return hashlib.sha256(str(settings).encode()).hexdigest()[:16]
