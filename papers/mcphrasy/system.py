"""McPhraSy and the variants of the paper's tables, as systems that score pairs of phrases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from benchmarks.quality.systems import TextEncoder, TokenMeans
from hybrid_search.encoder import Encoder
from hybrid_search.text.types import Floats, Halves
from papers.mcphrasy.contexts import Context, ContextCache
from papers.mcphrasy.embedder import Embedder
from papers.mcphrasy.masks import MaskEncoder, Masks
from papers.mcphrasy.similarity import Cloud, Similarity, mcphrasy
from papers.systems.huggingface import HuggingFace

CLOUDS = 64
"""Phrases whose final vectors are cached: more than a group to be clustered has.

300 contexts in float32 are 0.9 MB a phrase at 768 dimensions.
"""

PhraseUse = tuple[str, Sequence[Context]]
"""A phrase and contexts of it."""


@runtime_checkable
class Contextual(Protocol):
    """A `Scorer` that looks phrases up in a corpus."""

    def coverage(self, phrases: Iterable[str]) -> dict[str, Any]:
        """Return the number of phrases, of those in no sentence, and contexts a phrase."""
        ...

    def compare_contexts(self, firsts: Sequence[PhraseUse], seconds: Sequence[PhraseUse]) -> Floats:
        """Return how alike phrases are by these contexts alone, float32 ``[firsts]``.

        Each phrase has at least one context.
        """
        ...


@dataclass(frozen=True, slots=True)
class Base:
    """The two frozen models: one reads masked sentences, the other phrases by themselves.

    The paper's are SpanBERT and Phrase-BERT.
    """

    masks: MaskEncoder
    phrases: TextEncoder
    name: str

    @classmethod
    def from_encoder(cls, encoder: Encoder, spanbert: str = "", phrasebert: str = "") -> Base:
        """Return `encoder` for both, or a folder of Hugging Face weights for either.

        Hugging Face weights need the extra ``export``.
        """
        masks = hugging_face_masks(spanbert) if spanbert else Masks(encoder)
        phrases = HuggingFace(phrasebert) if phrasebert else TokenMeans(encoder)
        names = (masks.name, Path(phrasebert).name if phrasebert else encoder.info.fingerprint)
        return cls(masks, phrases, ", ".join(dict.fromkeys(names)))


def hugging_face_masks(name: str) -> Masks:
    """Return the encoder of a folder of Hugging Face weights, with its own tokenizer's mask."""
    model = HuggingFace(name)
    return Masks(model, model.tokenizer.mask_token)


@dataclass(frozen=True, slots=True, eq=False)
class Initial:
    """The frozen models' vectors of a phrase: one for each context, and its own.

    Float16 ``[contexts, mask]``, and `own` float32 ``[own]``.
    """

    masks: Halves
    own: Floats


class Store:
    """Phrases' contexts and initial representations, computed once and shared by variants."""

    def __init__(self, base: Base, library: ContextCache) -> None:
        self.base, self.library = base, library
        self._initials: dict[str, Initial] = {}

    def represent(self, phrases: Iterable[str]) -> Mapping[str, Initial]:
        """Return the initial representation of each phrase."""
        distinct_phrases = list(dict.fromkeys(phrases))
        unknown = [phrase for phrase in distinct_phrases if phrase not in self._initials]
        contexts = self.library.find_contexts(unknown)
        representations = self.build_representations(
            [(phrase, contexts[phrase]) for phrase in unknown]
        )
        self._initials.update(zip(unknown, representations, strict=True))
        return {phrase: self._initials[phrase] for phrase in distinct_phrases}

    def build_representations(self, uses: Sequence[PhraseUse]) -> list[Initial]:
        """Return the initial representation of phrases in these contexts; nothing is cached.

        Each context is read once.
        """
        distinct_contexts = list(
            dict.fromkeys(context for _, contexts in uses for context in contexts)
        )
        masks, row = (
            self.base.masks.vectors(distinct_contexts).astype(np.float16),
            {context: number for number, context in enumerate(distinct_contexts)},
        )
        names = list(dict.fromkeys(phrase for phrase, _ in uses))
        own = dict(zip(names, self.base.phrases.encode_texts(names), strict=True)) if names else {}
        return [
            Initial(masks[[row[context] for context in contexts]], own[phrase])
            for phrase, contexts in uses
        ]


@dataclass(frozen=True, slots=True)
class Variant:
    """A row of the paper's tables.

    Without an `embedder` mask vectors are used directly; `own` tells whether the phrase's own
    vector is used.
    """

    similarity: Similarity = mcphrasy
    embedder: Embedder | None = None
    own: bool = False


class McPhraSy:
    """One variant.

    A pair in which a phrase has no context is scored by the cosine of the two phrases' own vectors,
    whatever the variant.
    """

    def __init__(self, store: Store, variant: Variant) -> None:
        self.store, self.variant = store, variant

    def scores(self, queries: Sequence[str], texts: Sequence[str]) -> Floats:
        """Return how alike each query and the text beside it are, float32 ``[queries]``.

        Both are phrases.
        """
        initial = self.store.represent([*queries, *texts])
        return self._scores(
            [initial[query] for query in queries], [initial[text] for text in texts]
        )

    def compare_contexts(self, firsts: Sequence[PhraseUse], seconds: Sequence[PhraseUse]) -> Floats:
        """Return how alike phrases are by given contexts."""
        representations = self.store.build_representations([*firsts, *seconds])
        return self._scores(representations[: len(firsts)], representations[len(firsts) :])

    def coverage(self, phrases: Iterable[str]) -> dict[str, Any]:
        """Return the number of distinct phrases, those in no sentence, and mean contexts.

        The mean is over the phrases that have any.
        """
        counts = [
            len(phrase_contexts)
            for phrase_contexts in self.store.library.find_contexts(phrases).values()
        ]
        nonzero_counts = [count for count in counts if count]
        return {
            "phrases": len(counts),
            "held nowhere": len(counts) - len(nonzero_counts),
            "contexts a phrase": round(float(np.mean(nonzero_counts or [0])), 1),
        }

    def _scores(self, firsts: Sequence[Initial], seconds: Sequence[Initial]) -> Floats:
        cloud = lru_cache(CLOUDS)(self.cloud)

        def score(a: Initial, b: Initial) -> float:
            if len(a.masks) and len(b.masks):
                return self.variant.similarity(cloud(a), cloud(b))
            return float(a.own @ b.own)

        pair_scores = (score(a, b) for a, b in zip(firsts, seconds, strict=True))
        return np.fromiter(pair_scores, dtype=np.float32, count=len(firsts))

    def cloud(self, initial: Initial) -> Cloud:
        """Return the final representation of a phrase with contexts."""
        masks = initial.masks.astype(np.float32)
        if self.variant.embedder is None:
            return Cloud.from_vectors(masks)
        return Cloud.from_vectors(
            self.variant.embedder(masks, initial.own if self.variant.own else None)
        )
