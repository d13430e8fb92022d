"""Edit distance of characters (Levenshtein, 1966) as a likeness: 1 - distance / longer length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybrid_search.text.types import Floats


class EditDistance:
    """Scores by edit distance of the lower-cased texts."""

    def scores(self, queries: Sequence[str], texts: Sequence[str]) -> Floats:
        """Return 1 for equal texts, 0 where no letter can stay."""
        return np.array(
            [likeness(a.lower(), b.lower()) for a, b in zip(queries, texts, strict=True)],
            dtype=np.float32,
        )


def likeness(a: str, b: str) -> float:
    """Return 1 - distance / length of the longer; 1 for two empty texts."""
    return 1 - distance(a, b) / max(len(a), len(b), 1)


def distance(a: str, b: str) -> int:
    """Return the least number of insertions, deletions or exchanges of letters from `a` to `b`.

    Computed a row of the table at a time.
    """
    target = np.frombuffer(b.encode("utf-32-le"), dtype=np.uint32)
    row = np.arange(len(target) + 1)
    for number, letter in enumerate(a, 1):
        best = np.concatenate(
            [[number], np.minimum(row[1:] + 1, row[:-1] + (target != ord(letter)))]
        )
        row = np.minimum.accumulate(best - np.arange(len(best))) + np.arange(
            len(best)
        )  # insertions go along the row
    return int(row[-1])
