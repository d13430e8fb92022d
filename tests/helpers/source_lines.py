"""Documents as the lines of a source, which an ingest reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hybrid_search.ingest.types import SourceLine

RawDocument = Mapping[str, Any] | bytes
"""Bytes stand for themselves, as a line that may be no document."""


def make_lines(documents: Iterable[RawDocument]) -> list[SourceLine]:
    """Return the numbered lines of ``calls.jsonl``."""
    data = (
        document if isinstance(document, bytes) else json.dumps(document).encode()
        for document in documents
    )
    return [SourceLine("calls.jsonl", number, line) for number, line in enumerate(data, 1)]
