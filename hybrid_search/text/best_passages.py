"""The passages whose best spans are nearest to a query, and which spans count.

Spans may count by their speaker, and if they are not nearer to a phrase that is not meant. Others
get the cosine `-inf` before the best span of a passage is chosen: they are neither that nor shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_search.text import spans, word_codes
from hybrid_search.text.joined_words import join_stored
from hybrid_search.text.types import Floats, WordCodes
from hybrid_search.text.word_codes import score_joined, span_cosines_by_passage

Flags = NDArray[np.bool_]

LEFT_OUT = np.float32(-np.inf)
"""The cosine of a span that does not count."""


@dataclass(frozen=True, slots=True, eq=False)
class SpanFilter:
    """A filter that decides which spans count for a phrase.

    Attributes:
        speakers: Exact names of the speakers whose spans count; empty for all speakers.
        not_vectors: The unit vectors of phrases that are not meant, each float32 ``[dimension]``.
    """

    speakers: tuple[str, ...] = ()
    not_vectors: Sequence[Floats] = ()

    def apply(
        self, cosines: Iterable[Floats | None], passages: Sequence[WordCodes]
    ) -> Iterator[Floats | None]:
        """Yield the cosines of each passage, with `LEFT_OUT` for spans that do not count.

        Args:
            cosines: The cosines of all spans of each passage; None where its codes are damaged.
            passages: The codes of the passages, with `turns` if speakers matter.
        """
        opposed = [span_cosines_by_passage(vector, passages) for vector in self.not_vectors]
        for own, tokens, *others in zip(cosines, passages, *opposed, strict=True):
            if own is None:
                yield None
                continue
            counts = np.ones(len(own), dtype=np.bool_)
            if self.speakers:
                counts &= np.repeat(self.find_words(tokens), tokens.counts)
            for other in others:
                if other is not None:
                    counts &= other <= own  # of equal ones the phrase itself wins
            yield np.where(counts, own, LEFT_OUT)

    def find_words(self, tokens: WordCodes) -> Flags:
        """Return for each word of a passage whether a speaker says it, bool ``[words]``."""
        flags = np.zeros(len(tokens.words), dtype=np.bool_)
        for first, speaker in tokens.turns:
            flags[first:] = speaker in self.speakers
        return flags


def has_span(cosines: Floats) -> bool:
    """Return whether any span of a passage counts."""
    return bool(cosines.max(initial=LEFT_OUT) > LEFT_OUT)


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


def best_passages(
    query: Floats,
    codes_by_key: Mapping[Any, WordCodes],
    choose: Choose = list,
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
    pairs = zip(codes_by_key, cosines, strict=True)
    best = _choose_passages(pairs, choose, always, codes_by_key.__getitem__)
    return replace(best, outdone=outdone)


def best_stored_passages(
    query: Floats,
    stored_by_key: Mapping[Any, bytes],
    choose: Choose,
    always: Collection[Any] = (),
) -> BestPassages:
    """Return `best_passages` of stored bytes, faster than after `word_codes.read`."""
    cosines = score_joined(query, list(stored_by_key.values()), join_stored)
    return _choose_passages(
        zip(stored_by_key, cosines, strict=True),
        choose,
        always,
        lambda key: word_codes.read(stored_by_key[key]),
    )


def _is_outdone(of_all: Floats | None, counting: Floats | None) -> bool:
    """Return whether the best of all spans of a passage does not count."""
    if of_all is None or counting is None or not len(of_all):
        return False
    return bool(counting.max() < of_all.max())


def _choose_passages(
    cosines_by_key: Iterable[tuple[Any, Floats | None]],
    choose: Choose,
    always: Collection[Any],
    read: Callable[[Any], WordCodes],
) -> BestPassages:
    """Return the chosen passages, and those in `always`, of all with their cosines."""
    sound: list[tuple[Any, Floats]] = []
    damaged: list[Any] = []
    for key, cosines in cosines_by_key:
        if cosines is None:
            damaged.append(key)
        else:
            sound.append((key, cosines))
    best = spans.find_highest([cosines for _, cosines in sound])
    ranked = dict(sound[number] for number in np.argsort(-best, kind="stable").tolist())
    codes = {key: read(key) for key in choose(list(ranked))}
    others = {key: read(key) for key in always if key in ranked and key not in codes}
    return BestPassages(codes, others, {key: ranked[key] for key in [*codes, *others]}, damaged)
