"""PiC's phrase sense disambiguation (PSD) by cosine: a phrase stands at two places of a document, and at one of them it means what the query says.

- `best of all`: the most alike of all candidates of PR (`candidates.ngrams`, both places among them), scored as span selection is.
- `choice`: of the two places the more alike; the share that is right, .5 by chance. Equal ones are wrong, rows with one place are left out.

A place is read in its sentence, or in its paragraph; the query by itself, or (`both in context`) at that place, in the same sentence. What gives a
phrase one vector wherever it stands cannot tell the places apart, so only span encoders are measured. The paper has no ranking systems here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality import bootstrap
from benchmarks.quality.pic import candidates, files, selection
from benchmarks.quality.pic.files import Search
from benchmarks.quality.sentences import sentences
from benchmarks.quality.systems.base import Range, SpanEncoder, System
from hybrid_search.types import Floats

CONTEXTS: dict[str, Callable[[str], list[Range]]] = {"sentence": sentences, "paragraph": candidates.paragraphs}


def measure(system: System, data: Path, most: int | None = None) -> dict[str, Any]:
    """The figures of a span encoder on the test rows of PSD, or on the first `most` of them; of any other system, none."""
    path = files.test(data, files.PSD)
    searches = files.searches(path, files.PSD)[:most]
    made: dict[str, Any] = {"file": path.name, "rows": len(searches), "best of all": {}, "choice": {}}
    if isinstance(system, SpanEncoder):
        made["best of all"] = {
            name: selection.figures(searches, [best(system, each, cut(each.document)) for each in searches]) for name, cut in CONTEXTS.items()
        }
        made["choice"] = choices(system, [each for each in searches if each.others])
    return made


def best(system: SpanEncoder, search: Search, contexts: Sequence[Range]) -> Range:
    """The candidate that is the most alike to the query, each read in its own one of `contexts`; of equal ones the first."""
    places = candidates.ngrams(search)
    found = candidates.vectors(system, candidates.shown(search.document, places, contexts))
    return places[int(np.argmax(found @ system.alone([search.query])[0]))]


def choices(system: SpanEncoder, searches: Sequence[Search]) -> dict[str, Any]:
    """The choice between the places of each of `searches`, in each set-up; none of no searches."""
    if not searches:
        return {}
    found = {name: chosen([cosines(system, each, cut(each.document)) for each in searches]) for name, cut in CONTEXTS.items()}
    return {**found, "sentence, both in context": chosen([swapped(system, each) for each in searches])}


def chosen(told: Sequence[Floats]) -> dict[str, Any]:
    """Of how many rows, and mean and 95% interval of how often the first of a row's places scores above the others: it is the right one."""
    return {"rows": len(told), **bootstrap.summary([float(each[0] > each[1:].max()) for each in told])}


def cosines(system: SpanEncoder, search: Search, contexts: Sequence[Range]) -> Floats:
    """Of the query by itself with the right place and then the others, float32 ``[places]``."""
    texts = candidates.shown(search.document, _places(search), contexts)
    found: Floats = candidates.vectors(system, texts) @ system.alone([search.query])[0]
    return found


def swapped(system: SpanEncoder, search: Search) -> Floats:
    """Of the query at each place with what stands there, in the same order, float32 ``[places]``."""
    texts = candidates.shown(search.document, _places(search), sentences(search.document))
    found: Floats = (candidates.vectors(system, texts) * candidates.swapped(system, texts, search.query)).sum(axis=1)
    return found


def _places(search: Search) -> list[Range]:
    return [search.answers[0], *search.others]
