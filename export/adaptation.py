"""What an adaptation changed: both encoders on calls that it did not read."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from export.training import compose
from export.training.losses import unit
from export.training.model import SpanEncoder, read
from export.training.teacher import FrozenEncoder
from export.training.texts import Cutter, Text

PASSAGES = 400
"""Passages that are measured, at most."""

BUDGET = 2048


def measure(
    model: SpanEncoder, cutter: Cutter, passages: Sequence[str], judge: FrozenEncoder
) -> dict[str, float]:
    """Return how spans inside passages compare with `judge`, which reads them by themselves.

    ``agreement`` is Pearson's correlation of the cosines of all pairs of spans by the two
    encoders; ``context`` how much cosines of spans of one passage are higher than by the judge, on
    average: what neighbours add that is not meant.
    """
    texts = cutter.tokenize(list(passages)[:PASSAGES])
    spans = _draw_clauses(texts)
    if len(spans) < 2:
        return {}
    with torch.no_grad():
        encoded = read(model, cutter, texts, BUDGET)
        pieces = [(number, *texts[number].tokens(*span)) for number, *span in spans]
        vectors = unit(encoded.means(pieces))
    words = [texts[number].text[start:end] for number, start, end in spans]
    judged = judge.alone(words)
    return _compare(vectors @ vectors.T, judged @ judged.T, [number for number, *_ in spans])


def _draw_clauses(texts: Sequence[Text]) -> list[tuple[int, int, int]]:
    """Return two clauses of each text that has them, as (text, start, end)."""
    random = Random(1)  # noqa: S311 (no secret)
    spans = []
    for number, text in enumerate(texts):
        reach = int(text.offsets[-1, 1]) if len(text.offsets) else 0
        units = sorted(set(compose.units(text, reach)))
        spans += [(number, *unit) for unit in random.sample(units, min(2, len(units)))]
    return spans


def _compare(ours: Tensor, judged: Tensor, owners: Sequence[int]) -> dict[str, float]:
    """Return the figures of `measure` from two matrices of cosines and the spans' passages."""
    owner = torch.tensor(owners)
    upper = torch.ones_like(ours).triu(1).bool()
    same = (owner[:, None] == owner) & upper
    correlation = torch.corrcoef(torch.stack([ours[upper], judged[upper]]))[0, 1]
    added = (ours[same] - judged[same]).mean() if same.any() else torch.tensor(0.0)
    return {"agreement": round(float(correlation), 4), "context": round(float(added), 4)}
