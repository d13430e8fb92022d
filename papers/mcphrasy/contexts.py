"""The contexts of a phrase: sentences that contain it, with one mask in its place.

Section 3.1 of the paper. Thousands of phrases are searched in one pass over a corpus: they form a
tree of words, and every word of a sentence is followed down it.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heapreplace

from hybrid_search.discover.word_tree import WordTree, find_words

MOST = 300
"""Contexts of a phrase, the paper's m; it gained little beyond 100."""

CONTEXTS = 100
"""Contexts of a phrase when measuring: a third of the paper's, in a third of the time; it gained
little beyond.
"""

LEAST_WORDS = 3
"""Words beside the phrase that a sentence must have: fewer tell nothing about the mask."""

MOST_WORDS = 60
"""Sentences with more words are skipped: few are real sentences, and each costs as much as several
others.
"""

BREAK = r"[,;:?!()\[\]\"“”…]"
"""Marks that no phrase crosses, unless it contains them itself."""


@dataclass(frozen=True, slots=True)
class Context:
    """A sentence, and the place of the phrase in it, in code points."""

    text: str
    start: int
    end: int

    def mask_phrase(self, mask: str) -> str:
        """Return the sentence with `mask`, which begins at `start` too, in place of the phrase."""
        return self.text[: self.start] + mask + self.text[self.end :]


def search(
    phrases: Collection[str], sentences: Iterable[str], most: int = MOST
) -> dict[str, list[Context]]:
    """Return up to `most` contexts of each phrase, whole words in any case.

    A phrase that does not occur, or has no word, has none. The contexts of a phrase differ in more
    than case, since the distance to the closest other context means nothing among copies: calls
    repeat themselves. Those with the smallest hashes are taken, so the choice depends neither on
    the corpus's order nor on its beginning.
    """
    tree = WordTree(phrases)
    samples: dict[str, _Sample] = defaultdict(lambda: _Sample(most))
    for sentence in sentences:
        for names, context in _occurrences(tree, sentence):
            for name in names:
                samples[name].add(context)
    return {
        name: samples[name].contexts() if name in samples else [] for name in dict.fromkeys(phrases)
    }


def _occurrences(tree: WordTree, sentence: str) -> Iterator[tuple[list[str], Context]]:
    """Yield every place in the sentence where phrases stand, those inside others included."""
    words = find_words(sentence)
    if len(words) > MOST_WORDS:
        return
    for names, first, last in tree.find(words):
        if len(words) - (last + 1 - first) >= LEAST_WORDS:
            context = Context(sentence, words[first].start(), words[last].end())
            breaks = set(re.findall(BREAK, sentence[context.start : context.end]))
            yield [name for name in names if breaks <= set(name)], context


@dataclass(slots=True)
class _Sample:
    """The contexts with the smallest hashes of all that are added, each once."""

    most: int
    _heap: list[tuple[int, str, Context]] = field(default_factory=list)
    _seen_texts: set[str] = field(default_factory=set)

    def add(self, context: Context) -> None:
        masked_text = context.mask_phrase("\0").lower()
        entry = (
            -zlib.crc32(masked_text.encode("utf-8", "surrogatepass")),
            masked_text,
            context,
        )  # the root of the heap is the largest hash in it
        if masked_text in self._seen_texts:
            return
        if len(self._heap) == self.most and entry[:2] <= self._heap[0][:2]:
            return
        self._seen_texts.add(masked_text)
        if len(self._heap) < self.most:
            heappush(self._heap, entry)
        else:
            self._seen_texts.discard(heapreplace(self._heap, entry)[1])

    def contexts(self) -> list[Context]:
        """Return them ordered by hash, so that a prefix is as good a sample."""
        return [
            context for _, _, context in sorted(self._heap, key=lambda entry: (-entry[0], entry[1]))
        ]


class ContextCache:
    """Contexts of phrases, searched on first use: all phrases of a call in one pass.

    `sentences` begins a pass.
    """

    def __init__(self, sentences: Callable[[], Iterable[str]], most: int = MOST) -> None:
        self._sentences, self._most = sentences, most
        self._contexts: dict[str, list[Context]] = {}

    def find_contexts(self, phrases: Iterable[str]) -> Mapping[str, Sequence[Context]]:
        """Return the contexts of each phrase, none if no sentence contains it."""
        distinct_phrases = list(dict.fromkeys(phrases))
        unknown = [phrase for phrase in distinct_phrases if phrase not in self._contexts]
        if unknown:
            self._contexts.update(search(unknown, self._sentences(), self._most))
        return {phrase: self._contexts[phrase] for phrase in distinct_phrases}
