"""Find what says the same as a phrase: different wordings, each with its near duplicates folded.

The answer is exact: every span of every passage is compared with the phrase, as in mining.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.discover.clauses import SpanReader, find_similar
from hybrid_search.discover.options import SimilarOptions
from hybrid_search.discover.types import Occurrence, SimilarPhrase
from hybrid_search.discover.word_tree import normalize
from hybrid_search.encoder.base import Encoder, span_prior
from hybrid_search.parameters import check_phrase, complete
from hybrid_search.search.phrase_vector import query_vector
from hybrid_search.search.pipeline import match_encoder_to_index
from hybrid_search.text.filters import compile_where
from hybrid_search.text.types import Floats
from hybrid_search.topics.blocks import read_blocks, score_blocks
from hybrid_search.topics.mining import warn_of_damage

_log = logging.getLogger(__name__)

MOST_WORDINGS = 50_000
"""Different wordings in memory: about 70 MB with vectors of 256 numbers."""


def find_similar_phrases(
    backend: Backend, encoder: Encoder, index: str, phrase: str, options: SimilarOptions
) -> list[SimilarPhrase]:
    """Return the wordings that are nearest to a phrase, the largest cosine first.

    The errors are those of `Client.similar`, which has the options.
    """
    check_phrase("phrase", phrase)
    values = complete(SimilarOptions, options, "Client.similar")
    spec, fields = backend.read_head(index)
    encoder = match_encoder_to_index(encoder, index, spec)
    vector = query_vector(encoder, phrase, values["context"])
    conditions = compile_where(values["where"], fields)
    reader = SpanReader(backend, index, frozenset(values["speakers"]), conditions)
    choose = partial(
        find_similar, phrase=vector, prior=span_prior(encoder), least_cosine=values["min_cosine"]
    )
    wordings: dict[str, _Wording] = {}
    dropped_cosine, damaged = -math.inf, 0
    for block, spans in score_blocks(read_blocks(backend.scan_codes(index)), choose):
        damaged += spans.damaged
        for row, place in reader.read(block.passages, spans):
            if place.cosine <= dropped_cosine:
                continue
            key, span_vector = normalize(place.text), spans.vectors[row]
            wordings.setdefault(key, _Wording(place, span_vector)).add(place, span_vector)
            if len(wordings) > MOST_WORDINGS:  # the half with the smaller cosines is dropped
                cosines = {key: item.example.cosine for key, item in wordings.items()}
                dropped_cosine = float(np.median(list(cosines.values())))
                wordings = {
                    key: item for key, item in wordings.items() if cosines[key] > dropped_cosine
                }
    warn_of_damage(damaged + len(reader.damaged), index)
    if dropped_cosine > -math.inf:
        _log.warning(
            "more than %d wordings are near enough, so those with a cosine of at most %.3f were "
            "left out: ask for a larger min_cosine",
            MOST_WORDINGS,
            dropped_cosine,
        )
    return list(_fold(_sort(wordings.values()), values["size"], values["fold"]))


@dataclass(slots=True, eq=False)
class _Wording:
    """The places of the same words: the nearest one, with its vector, and how many there are."""

    example: Occurrence
    vector: Floats
    count: int = 0
    documents: set[str] = field(default_factory=set)

    def add(self, place: Occurrence, vector: Floats) -> None:
        self.count += 1
        self.documents.add(place.id)
        if place.cosine > self.example.cosine:
            self.example, self.vector = place, vector


def _sort(wordings: Iterable[_Wording]) -> list[_Wording]:
    """Return the wordings, the largest cosine first, then the shortest."""
    return sorted(
        wordings,
        key=lambda item: (-item.example.cosine, len(item.example.text), item.example.text),
    )


def _fold(wordings: list[_Wording], size: int, least_cosine: float) -> Iterator[SimilarPhrase]:
    """Yield the first wordings, each with the others that are near to it and to none before."""
    groups: list[list[_Wording]] = []
    first_vectors = np.zeros((size, len(wordings[0].vector) if wordings else 0), dtype=np.float32)
    for wording in wordings:
        cosines = first_vectors[: len(groups)] @ wording.vector
        if groups and cosines.max() >= least_cosine:
            groups[int(cosines.argmax())].append(wording)
        elif len(groups) < size:
            first_vectors[len(groups)] = wording.vector
            groups.append([wording])
    for near in groups:
        example = near[0].example
        yield SimilarPhrase(
            text=example.text,
            cosine=example.cosine,
            count=sum(item.count for item in near),
            wordings=len(near),
            documents=len(set().union(*(item.documents for item in near))),
            example=example,
        )
