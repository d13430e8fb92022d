"""Explanations for a query that found nothing, or nothing likely.

Used only after such a query, and `explain_language` where documents say their language: others pay
nothing for it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hybrid_search.backends.base import Backend
from hybrid_search.backends.turn_layout import read_speakers
from hybrid_search.backends.types import Request, StoredPassage
from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.errors import UsageError, show_value
from hybrid_search.search.query import Query
from hybrid_search.text.filters import ID, Condition, leaves, list_alternatives
from hybrid_search.text.languages import LANGUAGES, describe_unknown, recognise_language
from hybrid_search.text.name_lists import list_names
from hybrid_search.text.values import read_period

_log = logging.getLogger(__name__)

SAMPLED_PASSAGES = 100
"""Number of passages sampled for existing values of a field."""


def explain_no_hits(
    backend: Backend, query: Query, request: Request, fields: Mapping[str, str]
) -> list[str]:
    """Return and log reasons why no document was found, none if no document is similar.

    Raises UsageError for a value that neither has its field's type nor occurs in a document.
    """
    of_all_speakers = replace(request, span_filter=None)
    explanations = list(_explain(backend, query, of_all_speakers, fields))
    for explanation in explanations:
        _log.warning("%s", explanation)
    return explanations


def explain_language(phrases: Sequence[str], model: EncoderInfo) -> list[str]:
    """Return and log a warning that a phrase is in a language that the model does not know.

    Its probabilities mean little then: to such a model all German is alike.
    """
    if not model.languages:
        return []
    recognised = {phrase: recognise_language(phrase) for phrase in phrases}
    unknown = {
        phrase: code for phrase, code in recognised.items() if code and code not in model.languages
    }
    if not unknown:
        return []
    phrase, code = next(iter(unknown.items()))
    warning = (
        f"{show_value(phrase)} seems to be {LANGUAGES[code].capitalize()}, but "
        f"{describe_unknown(unknown.values(), model.name, model.languages)} (--model)"
    )
    _log.warning("%s", warning)
    return [warning]


def describe_empty_index(index: str) -> str:
    """Return advice for an index without documents."""
    return f"index {index!r} is empty: hybrid-search ingest FILE --index {index}"


def _explain(
    backend: Backend, query: Query, request: Request, fields: Mapping[str, str]
) -> Iterator[str]:
    if not _find_passages(backend, query.index, request, ()):
        yield describe_empty_index(query.index)
        return
    where = query.where or {}
    unmatched = [
        condition
        for condition in request.conditions
        if not _find_passages(backend, query.index, request, (condition,))
    ]
    for name in dict.fromkeys(condition.field for condition in unmatched):
        criterion = where[name]
        _check_type(name, criterion, fields)
        values = _sample_values(backend, query.index, request, name)
        alternatives = () if isinstance(criterion, Mapping) else list_alternatives(criterion)
        example = str(next(iter(alternatives), ""))
        yield (
            f"no document fulfils {show_value(name)}: {show_value(criterion)}. "
            f"Values of {show_value(name)} are {list_names(values, example)}"
        )
    if not unmatched and not _find_passages(backend, query.index, request, request.conditions):
        yield f"no document fulfils all of where together: {show_value(dict(where))}"
    if query.alpha == 0 and len(query.phrases) == 1:
        with_words = backend.find(query.index, replace(request, conditions=())).passages
        if not with_words:
            yield (
                f"no document has a word of {show_value(query.phrases[0])}, and alpha 0 is BM25 "
                "only: a larger alpha finds what means the same"
            )


def _find_passages(
    backend: Backend, index: str, request: Request, conditions: Sequence[Condition], window: int = 1
) -> Sequence[StoredPassage]:
    """Return up to `window` passages that fulfil conditions, and passages with damaged codes."""
    plain = replace(request, window=window, conditions=tuple(conditions))
    return backend.find(index, replace(plain, lexical=False, semantic=True)).passages


def _sample_values(backend: Backend, index: str, request: Request, name: str) -> list[str]:
    """Return sample values of a metadata field, or sample ids, as strings."""
    passages = _find_passages(backend, index, request, (), SAMPLED_PASSAGES)
    if name == ID:
        return sorted({passage.document_id for passage in passages})
    contents = backend.fetch_contents(index, [passage.key for passage in passages]).values()
    values = {
        str(value)
        for content in contents
        if not content.fault
        for path, _, value in leaves(json.loads(content.metadata))
        if path == name and value is not None
    }
    return sorted(values)


def _check_type(name: str, criterion: object, fields: Mapping[str, str]) -> None:
    """Raise UsageError if a date field is compared with text that is not a date."""
    if fields.get(name) != "date" or isinstance(criterion, Mapping):
        return
    for value in list_alternatives(criterion):
        if isinstance(value, str) and read_period(value) is None:
            raise UsageError(
                f"cannot filter {show_value(name)} by {show_value(value)}: the field has dates, "
                "and no document has this text there. Give a date or a time, as 2026-03-31"
            )


LOOKED_AT = 20
"""Number of passages whose speakers are listed."""


def explain_no_speaker(backend: Backend, index: str, request: Request) -> list[str]:
    """Return and log a warning that none of a request's speakers speaks near the phrase.

    It names the speakers of the passages that the request finds without its speakers; if there are
    no such passages, there is no warning.
    """
    of_all = replace(request, span_filter=None, window=LOOKED_AT)
    nearest = backend.find(index, of_all).passages
    keys = [passage.key for passage in nearest]
    contents = backend.fetch_contents(index, keys).values() if keys else ()
    speakers = sorted({name for content in contents for name in read_speakers(content.layout)})
    if not contents or set(speakers).intersection(request.speakers):
        return []
    missing = " or ".join(map(repr, request.speakers))
    names = ", ".join(map(repr, speakers)) or "none: their turns have no speaker"
    warning = (
        f"no speaker of the nearest passages is called {missing} (names are compared exactly): "
        f"their speakers are {names}"
    )
    _log.warning("%s", warning)
    return [warning]
