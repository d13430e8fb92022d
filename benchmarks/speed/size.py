"""Bytes on disk, against storing every span of 1..20 words inside its turn as float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hybrid_search.backends.embedded import schema
from hybrid_search.text.word_codes import from_bytes


def measure(folder: Path, index: str) -> dict[str, Any]:
    """Return the bytes of a closed embedded index, in all and per 1,000 words.

    Also how many times smaller that is than all spans.
    """
    words = spans = dimension = 0
    connection = schema.connect(folder / f"{index}.sqlite")
    for (data,) in connection.execute("SELECT data FROM tokens"):
        coded = from_bytes(data)
        words += int((coded.counts > 0).sum())
        spans += len(coded.norms)
        dimension = coded.dimension
    covering = connection.execute("SELECT sum(spans) FROM passages").fetchone()[0]
    codes = connection.execute("SELECT sum(length(data)) FROM tokens").fetchone()[0]
    (documents,) = connection.execute("SELECT count(*) FROM documents").fetchone()
    connection.close()
    segments = sum(path.stat().st_size for path in (folder / f"{index}.spans").glob("*"))
    total = segments + sum(path.stat().st_size for path in folder.glob(f"{index}.sqlite*"))
    return {
        "documents": documents,
        "words": words,
        "spans of 1..20 words": spans,
        "covering spans": covering,
        "covering spans a word": round(covering / words, 3),
        "bytes": total,
        "of these word codes": codes,
        "of these segments": segments,
        "bytes per 1,000 words": round(1000 * total / words),
        "all spans as float32, times as large": round(4 * dimension * spans / total, 1),
    }
