"""The vectors of phrases, each the mean over the contexts in which it occurs, as in McPhraSy.

A mention has one context, the place where it was found. A phrase has all places of an index where
its words stand; one that stands nowhere is encoded alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import PassageContent, ScannedPassage
from hybrid_search.discover.clauses import normalize_rows
from hybrid_search.discover.phrase_table import PhraseTable, TableBuilder
from hybrid_search.discover.types import Occurrence
from hybrid_search.discover.word_tree import WordTree, find_words
from hybrid_search.encoder.base import Encoder
from hybrid_search.ingest.shards import ALL_DOCUMENTS
from hybrid_search.search.hit import TurnPlace
from hybrid_search.search.phrase_vector import query_vectors
from hybrid_search.search.span_content import parse_layout, read_turns
from hybrid_search.text import word_codes
from hybrid_search.text.types import Floats
from hybrid_search.topics.blocks import read_blocks


@dataclass(frozen=True, slots=True, eq=False)
class ContextReader:
    """Reads phrases in their contexts from one index of vectors of this dimension."""

    backend: Backend
    index: str
    dimension: int

    def read_mentions(self, mentions: Sequence[Occurrence]) -> tuple[PhraseTable, int]:
        """Return the phrases of mentions, and how many mentions the index does not have.

        It does not have one if the document was deleted, or has other words there now.
        """
        by_document: defaultdict[str, set[Occurrence]] = defaultdict(set)
        distinct = {replace(mention, cosine=1.0) for mention in mentions}
        for mention in distinct:
            by_document[mention.id].add(mention)
        builder, count = TableBuilder(), 0
        for passage, content in self.read_passages(frozenset(by_document)):
            for mention in sorted(by_document[passage.document_id], key=lambda item: item.start):
                if _has_words(content, mention):
                    by_document[passage.document_id].discard(mention)
                    vector = pool_words(passage, mention.start, mention.end)
                    builder.add(mention.text, vector, mention)
                    count += 1
        return builder.build(), len(distinct) - count

    def read_phrases(self, phrases: Sequence[str], encoder: Encoder) -> PhraseTable:
        """Return phrases with all contexts of each; one without any is encoded alone.

        Raises UsageError for a phrase without a word.
        """
        tree, builder = WordTree(phrases), TableBuilder()
        for passage, content in self.read_passages(None):
            for turn in read_turns(parse_layout(content)):
                for name, place in _find_places(tree, passage, content, turn):
                    builder.add(name, pool_words(passage, place.start, place.end), place)
        for phrase in dict.fromkeys(phrases):
            if phrase not in builder:
                builder.add(phrase, query_vectors(encoder, [phrase])[0], None)
        return builder.build()

    def read_passages(
        self, documents: frozenset[str] | None
    ) -> Iterator[tuple[ScannedPassage, PassageContent]]:
        """Yield the sound passages of these documents, all for None, with their content."""
        passages = (
            passage
            for passage in self.backend.scan_codes(self.index)
            if documents is None or passage.document_id in documents
        )
        for block in read_blocks(passages, ALL_DOCUMENTS):
            keys = [passage.key for passage in block.passages]
            contents = self.backend.fetch_contents(self.index, keys)
            for passage in block.passages:
                content = contents.get(passage.key)
                is_sound = word_codes.is_sound(passage.tokens, self.dimension)
                if content is not None and not content.fault and is_sound:
                    yield passage, content


def encode_alone(encoder: Encoder, phrases: Sequence[str]) -> PhraseTable:
    """Return phrases encoded without any context. Raises UsageError for one without a word."""
    builder = TableBuilder()
    vectors = dict(zip(phrases, query_vectors(encoder, phrases), strict=True))
    for phrase in phrases:
        builder.add(phrase, vectors[phrase], None)
    return builder.build()


def _has_words(content: PassageContent, mention: Occurrence) -> bool:
    start, end = mention.start - content.start, mention.end - content.start
    return start >= 0 and content.text[start:end] == mention.text


def _find_places(
    tree: WordTree, passage: ScannedPassage, content: PassageContent, turn: TurnPlace
) -> Iterator[tuple[str, Occurrence]]:
    """Yield the places of phrases in the share that a passage has of a turn."""
    first = max(turn.start, content.start)
    text = content.text[first - content.start : turn.end - content.start]
    words = find_words(text)
    for names, first_word, last_word in tree.find(words):
        start, end = words[first_word].start, words[last_word].end
        place = Occurrence(
            passage.document_id,
            turn.turn,
            turn.speaker,
            first + start,
            first + end,
            text[start:end],
            1.0,
        )
        if _is_own(passage, place):
            yield names[0], place


def _is_own(passage: ScannedPassage, place: Occurrence) -> bool:
    """Return whether a place begins in this passage; the words after its core are of the next."""
    tokens = passage.tokens
    word = int(np.searchsorted(tokens.words[:, 1], place.start - passage.start, side="right"))
    return word < len(tokens.counts) and bool(tokens.counts[word])


def pool_words(passage: ScannedPassage, start: int, end: int) -> Floats:
    """Return the unit vector of the words at a place, the mean of their tokens."""
    words = passage.tokens.words
    first = int(np.searchsorted(words[:, 1], start - passage.start, side="right"))
    after = int(np.searchsorted(words[:, 0], end - passage.start, side="left"))
    rows = passage.tokens.rows
    inside = slice(rows[first], rows[max(first, after - 1)] + 1)
    vectors = word_codes.vectors(passage.tokens)[inside]
    unit: Floats = normalize_rows(vectors.sum(axis=0, dtype=np.float32, keepdims=True))[0]
    return unit
