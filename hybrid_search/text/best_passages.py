"""The passages whose best spans are nearest to a query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hybrid_search.text import spans, word_codes
from hybrid_search.text.joined_cosines import (
    span_cosines_by_passage,
    span_cosines_by_stored_passage,
)
from hybrid_search.text.span_filter import SpanFilter
from hybrid_search.text.types import Floats, WordCodes


@dataclass(frozen=True, slots=True, eq=False)
class BestPassages:
    """The passages whose best spans are nearest to a query.

    Attributes:
        codes: Their word codes by key, the nearest passage first.
        others: The word codes of the passages in `always` that are not among the best.
        cosines: The cosine of every span of all these passages, float32 ``[spans]`` each.
        damaged: The keys of passages with damaged codes, which have no cosines.
        outdone: The number of passages whose best span does not count.
    """

    codes: Mapping[Any, WordCodes] = field(default_factory=dict)
    others: Mapping[Any, WordCodes] = field(default_factory=dict)
    cosines: Mapping[Any, Floats] = field(default_factory=dict)
    damaged: Sequence[Any] = ()
    outdone: int = 0


Choose = Callable[[list[Any]], Iterable[Any]]
"""Chooses passages, in order, from all keys sorted nearest first."""


def keep_all(ranked: list[Any]) -> list[Any]:
    """Return all keys."""
    return ranked


def best_passages(
    query: Floats,
    codes_by_key: Mapping[Any, WordCodes],
    choose: Choose = keep_all,
    span_filter: SpanFilter | None = None,
    always: Collection[Any] = (),
) -> BestPassages:
    """Return the passages that `choose` takes from those nearest to `query`, and the damaged ones.

    The best come first; ties keep the order of `codes_by_key`. Passages in `always` are returned
    regardless. With a `span_filter`, only spans that pass it can be the best.
    """
    passages = list(codes_by_key.values())
    cosines: Iterable[Floats | None] = span_cosines_by_passage(query, passages)
    outdone = 0
    if span_filter:
        of_all = list(cosines)
        cosines = list(span_filter.apply(of_all, passages))
        outdone = sum(map(_is_outdone, of_all, cosines))
    ranked, damaged = _rank_passages(zip(codes_by_key, cosines, strict=True))
    codes = {key: codes_by_key[key] for key in choose(list(ranked))}
    left = [key for key in always if key in ranked and key not in codes]
    others = {key: codes_by_key[key] for key in left}
    best = {key: ranked[key] for key in [*codes, *left]}
    return BestPassages(codes, others, best, damaged, outdone)


def _is_outdone(of_all: Floats | None, counting: Floats | None) -> bool:
    """Return whether the best of all spans of a passage does not count."""
    if of_all is None or counting is None or not len(of_all):
        return False
    return bool(counting.max() < of_all.max())


def best_stored_passages(
    query: Floats,
    stored_by_key: Mapping[Any, bytes],
    choose: Choose,
    always: Collection[Any] = (),
) -> BestPassages:
    """Return `best_passages` of stored bytes, faster than after `word_codes.read`.

    Passages in `always` are returned regardless.
    """
    cosines = span_cosines_by_stored_passage(query, list(stored_by_key.values()))
    ranked, damaged = _rank_passages(zip(stored_by_key, cosines, strict=True))
    codes = {key: word_codes.read(stored_by_key[key]) for key in choose(list(ranked))}
    left = [key for key in always if key in ranked and key not in codes]
    others = {key: word_codes.read(stored_by_key[key]) for key in left}
    return BestPassages(codes, others, {key: ranked[key] for key in [*codes, *left]}, damaged)


def _rank_passages(
    cosines_by_key: Iterable[tuple[Any, Floats | None]],
) -> tuple[dict[Any, Floats], list[Any]]:
    """Return the cosines of all passages, best span first, and the damaged passages."""
    sound: list[tuple[Any, Floats]] = []
    damaged: list[Any] = []
    for key, cosines in cosines_by_key:
        if cosines is None:
            damaged.append(key)
        else:
            sound.append((key, cosines))
    best = spans.find_highest([cosines for _, cosines in sound])
    return dict(sound[number] for number in np.argsort(-best, kind="stable").tolist()), damaged
