"""All phrases that the evaluations measure on, so that nothing is trained on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hybrid_search.discover.word_tree import split_words
from papers.mcphrasy import choice, clusters, groups, ppdb, wordnet


def phrases(data: Path) -> set[tuple[str, ...]]:
    """Return the words of every phrase that is measured on, from the files that are present."""
    optional = (
        (data / groups.PUBLISHED, _reviews),
        (data / choice.FILE, _turney),
        (data / ppdb.FILE, _ppdb),
    )
    sources = [
        _synonyms(data),
        _senses(data),
        _requests(data),
        *(read(path) for path, read in optional if path.is_file()),
    ]
    return {tuple(split_words(phrase)) for source in sources for phrase in source}


def _synonyms(data: Path) -> Iterator[str]:
    return (phrase for pair in wordnet.synonyms(data) for phrase in (pair.first, pair.second))


def _senses(data: Path) -> Iterator[str]:
    return (form for word in wordnet.senses(data) for sense in word for form in sense.words)


def _requests(data: Path) -> Iterator[str]:
    return (
        phrase
        for name in ("banking77", "clinc150")
        for group in clusters.SOURCES[name](data)
        for phrase in group.phrases
    )


def _reviews(path: Path) -> Iterator[str]:
    return (phrase for group in groups.read(path) for phrase in group.phrases)


def _turney(path: Path) -> Iterator[str]:
    return (
        phrase for question in choice.read(path) for phrase in (question.phrase, *question.choices)
    )


def _ppdb(path: Path) -> Iterator[str]:
    return (phrase for pair in ppdb.read(path) for phrase in (pair.first, pair.second))
