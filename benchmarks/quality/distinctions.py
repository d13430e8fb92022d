"""Pairs of turns that look alike, of which one says what a phrase asks for.

Negation, roles, amounts, times, acronyms, typing errors, and what only might happen:
``benchmarks/data/distinctions.jsonl`` has pairs that were written for this measure, and
``data/found/semantic.jsonl`` turns as users of search engines reported them. A pair is right if the
turn that says it has the higher score. Nothing is trained on them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import lucene
from benchmarks.quality.span_scores import score_texts
from benchmarks.quality.vectors import means
from hybrid_search.encoder import Encoder
from hybrid_search.search.types import Scores

PAIRS = Path(__file__).parent.parent / "data" / "distinctions.jsonl"
REPORTED_TURNS = "found/semantic.jsonl"
REPORTED_PAIRS = (
    ("received refund", "neg-yes", "neg-no"),
    ("refund has arrived", "neg-yes", "neg-never"),
    ("wants to cancel", "cancel-yes", "cancel-no"),
    ("charged £15 for delivery", "num-15", "num-50"),
    ("delivery charge of fifteen pounds", "num-digits", "num-150"),
    ("invoice INV-4417", "inv-4417", "inv-4471"),
    ("agent apologises", "role-agent", "role-cust"),
    ("other driver hit the customer's car", "dir-a", "dir-b"),
    ("customer drove into another car", "dir-b", "dir-a"),
    ("forgot my PIN", "acr-full", "acr-kyc"),
    ("direct debit bounced", "acr-dd", "acr-pin"),
    ("threatens legal action", "cond", "sarcasm"),
)
"""A phrase, the id of the turn that says it, and of the one that does not."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A phrase, a turn that says it, and one that only looks so; `kind` is what sets them apart."""

    kind: str
    phrase: str
    right: str
    wrong: str


def read_pairs(data: Path) -> list[Pair]:
    """Return the pairs written for this, and the reported ones of the data beside the checkout."""
    pairs = [Pair(**json.loads(line)) for line in PAIRS.read_text("utf-8").splitlines()]
    rows = map(json.loads, (data / REPORTED_TURNS).read_text("utf-8").splitlines())
    texts = {row["id"]: row["turns"][0]["text"] for row in rows}
    reported = [
        Pair("reported", phrase, texts[right], texts[wrong])
        for phrase, right, wrong in REPORTED_PAIRS
    ]
    return pairs + reported


def measure(encoder: Encoder, data: Path) -> dict[str, object]:
    """Return how many pairs of each kind are in the right order, by system."""
    pairs = read_pairs(data)
    texts = [text for pair in pairs for text in (pair.right, pair.wrong)]
    phrases = [pair.phrase for pair in pairs]
    tables = score_texts(encoder, texts, means(encoder, phrases))
    scores = {
        "bm25": np.array(list(lucene.score(texts, phrases))).T,
        "best span": tables.span,
        "one vector a turn": tables.mean,
    }
    kinds = list(dict.fromkeys(pair.kind for pair in pairs))
    return {
        "pairs": {kind: sum(pair.kind == kind for pair in pairs) for kind in kinds},
        "right": {name: count_right(pairs, table) for name, table in scores.items()},
    }


def count_right(pairs: Sequence[Pair], scores: Scores) -> dict[str, int]:
    """Return how many pairs of each kind are right, given the scores of ``[texts, phrases]``."""
    counts = dict.fromkeys([pair.kind for pair in pairs], 0)
    for number, pair in enumerate(pairs):
        right, wrong = scores[2 * number : 2 * number + 2, number]
        counts[pair.kind] += int(right > wrong)
    return counts
