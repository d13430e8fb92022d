"""PiC's span selection: is the selected span of a document the answer, and at its place?

EM and F1 are SQuAD's (Rajpurkar et al., 2016): of texts in lower case without punctuation and
articles, the best over the right answers. EM+loc and F1+loc (PiC, footnote 2) are the same where
the selected span shares a character with the right one, and 0 where it does not: in PSD the phrase
also stands at a wrong place.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from benchmarks.quality import bootstrap
from benchmarks.quality.systems import Range
from papers.pic import files
from papers.pic.files import Search

_ARTICLE = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@runtime_checkable
class Reader(Protocol):
    """A system that selects a span of a document for a query."""

    def answer(self, query: str, document: str) -> tuple[int, int] | tuple[int, int, float]:
        """Return start and end of the span, in code points, and optionally its score."""
        ...


def measure(reader: Reader, data: Path, task: str) -> dict[str, Any]:
    """Return the figures of `reader` on the test rows of a task, and the name of their file.

    `task` is "pr-pass", "pr-page" or "psd".
    """
    path = files.find_test_file(data, task)
    searches = files.read_searches(path, task)
    return {"file": path.name, **figures(searches, pick_spans(reader, searches))}


def pick_spans(reader: Reader, searches: Sequence[Search]) -> list[Range]:
    """Return the span that `reader` selects in each document."""
    return [reader.answer(search.query, search.document)[:2] for search in searches]


def figures(searches: Sequence[Search], places: Sequence[Range]) -> dict[str, Any]:
    """Return the number of rows, and mean and 95% interval of EM, F1, EM+loc and F1+loc.

    Of the `places` selected in them, all from 0 to 1.
    """
    values: dict[str, list[float]] = {"EM": [], "F1": [], "EM+loc": [], "F1+loc": []}
    for search, place in zip(searches, places, strict=True):
        for name, value in scores(search, place).items():
            values[name].append(value)
    return {
        "rows": len(searches),
        **{name: bootstrap.summary(row_values) for name, row_values in values.items()},
    }


def scores(search: Search, place: Range) -> dict[str, float]:
    """Return the four scores of a row."""
    selected_text = search.document[slice(*place)]
    comparisons = [
        (exact_match(selected_text, text), f1(selected_text, text), files.overlaps(place, right))
        for text, right in zip(search.texts, search.answers, strict=True)
    ]
    return {
        "EM": max(same for same, _, _ in comparisons),
        "F1": max(shared for _, shared, _ in comparisons),
        "EM+loc": max(same * overlap for same, _, overlap in comparisons),
        "F1+loc": max(shared * overlap for _, shared, overlap in comparisons),
    }


def exact_match(selected_text: str, right: str) -> float:
    """Return 1 if both have the same words, else 0."""
    return float(terms(selected_text) == terms(right))


def f1(selected_text: str, right: str) -> float:
    """Return the harmonic mean of the shares of each text's words that the other has.

    Repeated words are counted; 1 for two texts without a word.
    """
    a, b = terms(selected_text), terms(right)
    shared = sum((Counter(a) & Counter(b)).values())
    return 2 * shared / (len(a) + len(b)) if a or b else 1.0


def terms(text: str) -> list[str]:
    """Return the words between spaces, in lower case and without punctuation and articles."""
    return _ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split()
