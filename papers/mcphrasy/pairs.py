"""Scores of pairs of phrases by any system.

So one table compares the similarity of phrases alone with that of their contexts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.quality.systems import Scorer, System
from hybrid_search.text.types import Floats
from papers.mcphrasy.system import Contextual


def similarities(system: System, firsts: Sequence[str], seconds: Sequence[str]) -> Floats:
    """Return how alike the phrases of each pair are, float32 ``[pairs]``.

    By the system's own scores, or else the cosines of its vectors.
    """
    if isinstance(system, Scorer):
        return system.scores(firsts, seconds)
    names = list(dict.fromkeys([*firsts, *seconds]))
    row = {name: number for number, name in enumerate(names)}
    vectors = system.encode_texts(names)
    cosines: Floats = np.einsum(
        "ij,ij->i",
        vectors[[row[phrase] for phrase in firsts]],
        vectors[[row[phrase] for phrase in seconds]],
    )
    return cosines


def coverage(system: System, phrases: Iterable[str]) -> dict[str, Any]:
    """Return what share of phrases a system found that looks them up; nothing for other systems."""
    return system.coverage(phrases) if isinstance(system, Contextual) else {}
