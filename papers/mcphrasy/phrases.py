"""Frequent phrases of a corpus, which the embedder is trained on.

The paper has 27,723 noun phrases of Wikipedia; here no tagger is used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from hybrid_search.discover.word_tree import split_words
from papers.mcphrasy.contexts import BREAK, MOST_WORDS

LENGTHS = (2, 3)
"""Words of a phrase."""

STOP = frozenset(
    split_words(
        """a about above after again all also am an and another any anybody anyone anything are
        aren't around as at back be because been before being both but by came can can't come
        could did didn't do does doesn't doing don't done down each either else even ever
        every everybody everyone everything few for from get gets give go goes going gonna got
        had has hasn't have haven't having he he's hello her here hers herself hey hi him
        himself his how i i'd i'll i'm i've if in into is isn't it it's its itself just kind
        know let let's like little look lot lots make many may maybe me mean might mine more
        most much must my myself need neither no nobody none nor not nothing now of off oh ok
        okay on once one only or other others our ours out over please put really right said
        same say see she should so some somebody someone something still such sure take than
        thank thanks that that's the their theirs them themselves then there there's these
        they they're thing things think this those through to too uh um under until up us very
        want was wasn't way we we'll we're we've well went were what what's when where which
        while who whom whose why will with within without won't would yeah yes yet you you'd
        you'll you're you've your yours yourself"""
    )
)
"""Words that no phrase begins or ends with: those of grammar, and those of every call."""

INSIDE = 0.5
"""A phrase is left out if this share of its occurrences is inside a longer one: "care provider".
"""


def find_frequent_phrases(
    sentences: Callable[[], Iterable[str]],
    count: int,
    least: int,
    without: Collection[Sequence[str]] = (),
) -> list[str]:
    """Return the `count` most frequent phrases of 2 or 3 words, most frequent first.

    Each is in at least `least` different sentences; `sentences` begins a pass. None begins or ends
    with one of `STOP`, has a digit or a single letter, crosses punctuation, or has the words of one
    in `without`.
    """
    common = Counter(
        word for sentence in _iterate_distinct(sentences()) for word in split_words(sentence)
    )
    frequent_words = {word for word, number in common.items() if number >= least}
    ngram_counts = Counter(
        ngram
        for sentence in _iterate_distinct(sentences())
        for ngram in set(_iterate_ngrams(sentence, frequent_words))
    )
    frequent_ngrams = {ngram: number for ngram, number in ngram_counts.items() if number >= least}
    longer_counts = _count_longer(frequent_ngrams)
    excluded_ngrams = {tuple(excluded_phrase) for excluded_phrase in without}
    selected_ngrams = [
        ngram
        for ngram, number in frequent_ngrams.items()
        if longer_counts.get(ngram, 0) < INSIDE * number and ngram not in excluded_ngrams
    ]
    return [
        " ".join(ngram)
        for ngram in sorted(selected_ngrams, key=lambda ngram: (-frequent_ngrams[ngram], ngram))[
            :count
        ]
    ]


def _iterate_distinct(sentences: Iterable[str]) -> Iterator[str]:
    """Yield each sentence once; sentences are remembered by their hashes."""
    seen: set[int] = set()
    for sentence in sentences:
        code = hash(sentence)
        if code not in seen:
            seen.add(code)
            yield sentence


def _iterate_ngrams(sentence: str, allowed_words: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Yield the runs of allowed words that may be phrases."""
    for piece in re.split(BREAK, sentence):
        piece_words = split_words(piece)
        if len(piece_words) <= MOST_WORDS:
            for length in LENGTHS:
                for ngram in zip(*(piece_words[start:] for start in range(length)), strict=False):
                    if {ngram[0], ngram[-1]} & STOP:
                        continue
                    if all(word in allowed_words and _is_word(word) for word in ngram):
                        yield ngram


def _is_word(word: str) -> bool:
    return len(word) > 1 and not any(letter.isdigit() or letter == "_" for letter in word)


def _count_longer(counts: dict[tuple[str, ...], int]) -> dict[tuple[str, ...], int]:
    """Return the count of the most frequent phrase around each phrase of two words.

    The phrases around it have three words.
    """
    most: dict[tuple[str, ...], int] = {}
    for ngram, number in counts.items():
        if len(ngram) > min(LENGTHS):
            for inner in (ngram[:-1], ngram[1:]):
                most[inner] = max(most.get(inner, 0), number)
    return most
