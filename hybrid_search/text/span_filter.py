"""The filter of spans: by speaker, and by phrases that are not meant.

It applies before the best span of a passage is chosen. A filtered span gets the cosine `-inf`, so
it is neither the best of its passage nor shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_search.text.joined_cosines import span_cosines_by_passage
from hybrid_search.text.types import Floats, WordCodes

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
                    counts &= ~is_nearer(other, own)
            yield np.where(counts, own, LEFT_OUT)

    def find_words(self, tokens: WordCodes) -> Flags:
        """Return for each word of a passage whether a speaker says it, bool ``[words]``."""
        flags = np.zeros(len(tokens.words), dtype=np.bool_)
        for first, speaker in tokens.turns:
            flags[first:] = speaker in self.speakers
        return flags


def is_nearer(not_meant: Floats, meant: Floats) -> Flags:
    """Return for each span whether it is nearer to the unwanted phrase; ties are not."""
    return np.asarray(not_meant > meant)


def has_span(cosines: Floats) -> bool:
    """Return whether any span of a passage counts."""
    return bool(cosines.max(initial=LEFT_OUT) > LEFT_OUT)
