"""PiC's phrase similarity (PS): do two phrases mean the same in a sentence? The area under the ROC curve of their cosine.

Pham, Yoon, Bui, Nguyen, "PiC: A Phrase-in-Context Dataset for Phrase Understanding and Semantic Search", 2023. Measured only, never trained on: its
licence is not commercial.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.quality.correlation import auc
from benchmarks.quality.tasks import rows
from hybrid_search.encoder import Encoder
from hybrid_search.errors import UsageError
from hybrid_search.phrase import similarity

FILE = "pic/ps_test_sample.jsonl"
"""Below the data folder."""


def measure(encoder: Encoder, data: Path) -> dict[str, Any]:
    """AUC of the phrases alone and of each in its sentence, by the product's `similarity`. Pairs that their sentences do not hold are left out."""
    pairs = [(row, found) for row in rows(data / FILE) if (found := cosines(encoder, row))]
    labels = [row["label"] for row, _ in pairs]
    alone, inside = (auc([found[way] for _, found in pairs], labels) for way in (0, 1))
    return {"pairs": len(pairs), "phrases alone": round(alone, 4), "in context": round(inside, 4)}


def cosines(encoder: Encoder, row: dict[str, Any]) -> tuple[float, float] | None:
    """The cosine of the two phrases alone, and in their sentences; None where a sentence does not hold its phrase."""
    try:
        inside = similarity(encoder, row["phrase1"], row["phrase2"], row["sentence1"], row["sentence2"])
    except UsageError:
        return None
    return similarity(encoder, row["phrase1"], row["phrase2"]), inside
