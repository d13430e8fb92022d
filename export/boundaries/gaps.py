"""Texts in which the punctuation tells where clauses end, as written and as recognised.

A recogniser writes lower case without punctuation. The words stay the same, and so do the labels of
the gaps between them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.quality.recognised import spell_words
from export.boundaries import corpora, marked_turns
from export.boundaries.places import find_words
from hybrid_search.text.best_passages import Flags
from hybrid_search.text.clause_marks import ENDS, classify_gaps
from hybrid_search.text.passages import WINDOW_WORDS
from hybrid_search.text.types import Floats, Ints, PassageTokens
from hybrid_search.text.words import words

WRITTEN, RECOGNISED = "written", "recognised"
TOPICS = "written topics"
TRANSLATED, TRANSLATED_COUNT = "turns in other languages", 6000

LEAST_WORDS, MOST_WORDS = 6, 70
"""Shorter texts are left out. Of longer ones a run of words is taken, from a random place."""

WITHOUT_MARK = 0.3
"""The share of the texts without a mark between words that is used."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where texts come from, and how many of them are used."""

    read: Callable[[Path], list[str]]
    count: int


SOURCES = {
    "sgd": Source(corpora.read_sgd_turns, 5000),
    "taskmaster4": Source(partial(corpora.read_turns, name="calls_taskmaster4"), 3000),
    "multiwoz": Source(partial(corpora.read_turns, name="calls_multiwoz"), 3500),
    "qmsum": Source(partial(corpora.read_positives, name="qmsum"), 600),
    "squad": Source(partial(corpora.read_positives, name="squad"), 1200),
    "banking77": Source(partial(corpora.read_positives, name="banking77"), 2000),
    "selqa": Source(partial(corpora.read_positives, name="selqa"), 1500),
    "medquad": Source(partial(corpora.read_positives, name="medquad"), 1500),
}


@dataclass(frozen=True, slots=True, eq=False)
class LabelledText:
    """A text and whether a clause ends in each gap between its words, bool ``[words - 1]``.

    The forms of a text have the same `number`. Of the gaps that are not `known` nobody has said;
    bool of the same shape.
    """

    number: int
    source: str
    form: str
    text: str
    labels: Flags
    known: Flags


def read_labelled_texts(
    data: Path, seed: int, languages: Collection[str], most: int | None = None
) -> list[LabelledText]:
    """Return texts of all sources in random order, each as written and as recognised.

    They are in English, and in the other languages of `languages`, by their codes. At most `most`
    are used; all if it is None.
    """
    candidates = {name: source.read(data) for name, source in SOURCES.items()}
    counts = {name: source.count for name, source in SOURCES.items()}
    if translated := corpora.read_translated_turns(languages):
        candidates[TRANSLATED], counts[TRANSLATED] = translated, TRANSLATED_COUNT
    texts: list[tuple[str, str, tuple[int, int] | None]] = [
        (name, text, None)
        for name, of_source in candidates.items()
        for text in select_texts(of_source, counts[name], corpora.make_random(seed, name))
    ]
    topics = marked_turns.read_turns(data, languages)
    texts += [(TOPICS, turn.text, turn.clause) for turn in topics]
    corpora.make_random(seed, "order").shuffle(texts)
    return [
        labelled
        for number, (name, text, clause) in enumerate(texts[:most])
        for labelled in label_text(number, name, text, clause)
    ]


def select_texts(candidates: Iterable[str], count: int, random: Random) -> list[str]:
    """Return up to `count` different texts of a length to learn from, in random order."""
    shuffled = sorted(set(candidates))
    random.shuffle(shuffled)
    selected: dict[str, None] = {}
    for candidate in shuffled:
        text = _cut_text(candidate, random)
        if len(selected) < count and _is_useful(text, random):
            selected[text] = None
    return list(selected)


def _cut_text(text: str, random: Random) -> str:
    """Return `MOST_WORDS` consecutive words of a text, or all if it has no more."""
    pieces = text.split()
    start = random.randrange(max(1, len(pieces) - MOST_WORDS))
    return " ".join(pieces[start : start + MOST_WORDS])


def _is_useful(text: str, random: Random) -> bool:
    bounds = words(text)
    if not LEAST_WORDS <= len(bounds) <= WINDOW_WORDS:
        return False
    return bool(find_marks(text, bounds).any()) or random.random() < WITHOUT_MARK


def label_text(
    number: int, source: str, text: str, clause: tuple[int, int] | None = None
) -> Iterator[LabelledText]:
    """Yield a text as written and, if its words stay the same, as recognised.

    Its punctuation is the label. Where a person marked a clause, that is: the gaps at its ends and
    those inside are known, and no others.
    """
    bounds = words(text)
    labels = find_marks(text, bounds)
    known = np.ones_like(labels)
    place = find_words(bounds, *clause) if clause else None
    if place:
        first, after = place
        gaps = np.arange(1, len(bounds))
        known = (gaps >= first) & (gaps <= after)
        labels = labels | (gaps == first) | (gaps == after)
    yield LabelledText(number, source, WRITTEN, text, labels, known)
    recognised = write_as_recognised(text, bounds)
    if recognised:
        yield LabelledText(number, source, RECOGNISED, recognised, labels, known)


def write_as_recognised(text: str, bounds: Ints) -> str:
    """Return the words of a text in lower case, with blanks between them.

    Empty where that changes the number of words, as a lone apostrophe may.

    Args:
        text: A text.
        bounds: Start and end of each of its words, int32 ``[words, 2]``.
    """
    recognised = " ".join(spell_words(text, bounds))
    return recognised if len(words(recognised)) == len(bounds) else ""


def find_marks(text: str, words: Ints) -> Flags:
    """Return for each gap between words whether a mark there ends a clause, bool ``[words - 1]``.

    `words` are start and end of each word of the text, int32 ``[words, 2]``.
    """
    marks: Flags = np.fromiter(classify_gaps(text, words.tolist()), dtype=np.int8) == ENDS
    return marks


def gap_vectors(tokens: PassageTokens) -> Floats:
    """Return the vectors around each gap between words, float32 ``[words - 1, 2 * dimension]``.

    A row is the vector of the last token before the gap, followed by the vector of the first token
    after it. A word without a token is represented by the nearest token; without any tokens the
    vectors are 0.
    """
    vectors = tokens.vectors
    if not len(vectors):
        return np.zeros((len(tokens.words) - 1, 2 * vectors.shape[1]), dtype=np.float32)
    last_token = len(vectors) - 1
    before = np.clip(tokens.words[:-1, 3] - 1, 0, last_token)
    after = np.clip(tokens.words[1:, 2], 0, last_token)
    return np.concatenate([vectors[before], vectors[after]], axis=1)
