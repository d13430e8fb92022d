"""PiC's phrase similarity (PS) as a dev set: the area under the ROC curve of the phrases' cosine.

The cosine is the product's own `similarity`. Always of the sample, even where the authors' files
are present, so that the figure means the same everywhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.quality.correlation import auc
from benchmarks.quality.tasks import rows
from hybrid_search.encoder import Encoder
from hybrid_search.errors import UsageError
from hybrid_search.search.phrase_vector import similarity

FILE = "pic/ps_test_sample.jsonl"
"""Below the data folder."""


def measure(encoder: Encoder, data: Path) -> dict[str, Any]:
    """Return the AUC of the phrases alone, and of each in its sentence.

    Pairs whose sentences do not contain them are left out.
    """
    pairs = [
        (row, pair_cosines) for row in rows(data / FILE) if (pair_cosines := cosines(encoder, row))
    ]
    labels = [row["label"] for row, _ in pairs]
    alone, inside = (
        auc([pair_cosines[way] for _, pair_cosines in pairs], labels) for way in (0, 1)
    )
    return {"pairs": len(pairs), "phrases alone": round(alone, 4), "in context": round(inside, 4)}


def cosines(encoder: Encoder, row: dict[str, Any]) -> tuple[float, float] | None:
    """Return the cosine of two phrases alone and in their sentences.

    None if a sentence does not contain its phrase.
    """
    try:
        inside = similarity(
            encoder, row["phrase1"], row["phrase2"], row["sentence1"], row["sentence2"]
        )
    except UsageError:
        return None
    return similarity(encoder, row["phrase1"], row["phrase2"]), inside
