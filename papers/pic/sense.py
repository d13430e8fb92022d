"""PiC's phrase sense disambiguation (PSD) by cosine.

A phrase stands at two places of a document, and at one of them it means what the query says.

- `best of all`: the most alike of all candidates of PR (`candidates.ngrams`, both places among
  them), scored as span selection is.
- `choice`: of the two places the more alike; the share that is right, .5 by chance. Equal ones are
  wrong, rows with one place are left out.

A place is read in its sentence, or in its paragraph; the query by itself, or (`both in context`) at
that place, in the same sentence. A system that gives a phrase the same vector everywhere cannot
tell the places apart, so only span encoders are measured. The paper has no ranking systems here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality import bootstrap
from benchmarks.quality.sentences import sentences
from benchmarks.quality.systems import Range, SpanEncoder, System
from hybrid_search.text.types import Floats
from papers.pic import candidates, files, selection
from papers.pic.files import Search

CONTEXTS: dict[str, Callable[[str], list[Range]]] = {
    "sentence": sentences,
    "paragraph": candidates.paragraphs,
}


def measure(system: System, data: Path, most: int | None = None) -> dict[str, Any]:
    """Return the figures of a span encoder on the test rows of PSD; of another system, none.

    With `most` only the first rows are used.
    """
    path = files.find_test_file(data, files.PSD)
    searches = files.read_searches(path, files.PSD)[:most]
    result: dict[str, Any] = {
        "file": path.name,
        "rows": len(searches),
        "best of all": {},
        "choice": {},
    }
    if isinstance(system, SpanEncoder):
        result["best of all"] = {
            name: selection.figures(
                searches, [find_best(system, search, cut(search.document)) for search in searches]
            )
            for name, cut in CONTEXTS.items()
        }
        result["choice"] = choices(system, [search for search in searches if search.other_places])
    return result


def find_best(system: SpanEncoder, search: Search, contexts: Sequence[Range]) -> Range:
    """Return the candidate that is the most alike to the query, the first among equal ones.

    Each candidate is read in its own one of `contexts`.
    """
    places = candidates.ngrams(search)
    vectors = candidates.vectors(
        system, candidates.group_by_context(search.document, places, contexts)
    )
    return places[int(np.argmax(vectors @ system.encode_texts([search.query])[0]))]


def choices(system: SpanEncoder, searches: Sequence[Search]) -> dict[str, Any]:
    """Return the choice between the places of each search, in each set-up; none of no searches."""
    if not searches:
        return {}
    figures = {
        name: score_choices([cosines(system, search, cut(search.document)) for search in searches])
        for name, cut in CONTEXTS.items()
    }
    return {
        **figures,
        "sentence, both in context": score_choices(
            [cosines_in_place(system, search) for search in searches]
        ),
    }


def score_choices(place_scores: Sequence[Floats]) -> dict[str, Any]:
    """Return the number of rows, and how often the first of a row's places scores highest.

    With mean and 95% interval; the first place is the right one.
    """
    return {
        "rows": len(place_scores),
        **bootstrap.summary(
            [float(row_scores[0] > row_scores[1:].max()) for row_scores in place_scores]
        ),
    }


def cosines(system: SpanEncoder, search: Search, contexts: Sequence[Range]) -> Floats:
    """Return cosines of the query alone with each place, the right one first."""
    texts = candidates.group_by_context(search.document, _places(search), contexts)
    scores: Floats = candidates.vectors(system, texts) @ system.encode_texts([search.query])[0]
    return scores


def cosines_in_place(system: SpanEncoder, search: Search) -> Floats:
    """Return cosines of the query put at each place with its phrase, float32 ``[places]``."""
    texts = candidates.group_by_context(
        search.document, _places(search), sentences(search.document)
    )
    scores: Floats = (
        candidates.vectors(system, texts) * candidates.swap_query(system, texts, search.query)
    ).sum(axis=1)
    return scores


def _places(search: Search) -> list[Range]:
    return [search.answers[0], *search.other_places]
