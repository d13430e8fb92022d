"""Turn a file of matches into documents of an index of matches, with the sentence around each."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from hybrid_search.backends.server.match_index import MatchIndex
from hybrid_search.search.hit import DocumentView
from hybrid_search.text.filters import leaves
from hybrid_search.text.values import FORMS, parse_date
from hybrid_search.topics.match import Match, read_matches
from hybrid_search.topics.report.counts import find_date_field
from hybrid_search.topics.surroundings import Surroundings, read_sentence

BATCH_DOCUMENTS = 50
"""Documents that are read together, for the sentences of their matches."""

LABEL_CHARACTERS = 100
"""Longer texts in metadata are no labels: hardly two documents have the same."""


ReadDocuments = Callable[[Sequence[str]], Mapping[str, DocumentView]]


def upload_matches(
    sink: MatchIndex,
    matches_file: Path,
    topics: Sequence[str],
    read_documents: ReadDocuments,
    date_field: str | None = None,
) -> tuple[int, int]:
    """Replace the matches of some topics by those in a file of all of them, in JSON lines.

    `read_documents` returns the existing documents among some ids, by id, and `date_field` has the
    time of a call; None for the first whose values are dates.

    Returns:
        How many matches were written, and how many of earlier runs were removed.
    """
    run = secrets.token_hex(8)
    date_field = date_field or find_date_field(read_matches(matches_file))
    written = sink.write(run, _build_documents(matches_file, read_documents, date_field))
    return written, sink.remove_earlier(run, topics)


def _build_documents(
    matches_file: Path, read_documents: ReadDocuments, date_field: str | None
) -> Iterator[dict[str, Any]]:
    mined_at = datetime.now(UTC).isoformat(timespec="seconds")
    groups = groupby(read_matches(matches_file), key=lambda match: match.id)
    matches_by_document = ((name, list(group)) for name, group in groups)
    while batch := list(islice(matches_by_document, BATCH_DOCUMENTS)):
        views = read_documents([name for name, _ in batch])
        for name, matches in batch:
            # if the document was deleted since, only the words are known
            view = views.get(name) or DocumentView(name, "", (), {})
            for match in matches:
                document = _build_document(match, read_sentence(view, match), date_field)
                yield {**document, "mined_at": mined_at}


def _build_document(match: Match, around: Surroundings, date_field: str | None) -> dict[str, Any]:
    values = match.to_dict()
    values["document_id"] = values.pop("id")
    days = [parse_date(value) for name, _, value in leaves(match.metadata) if name == date_field]
    if days and days[0]:
        values["time"] = str(days[0])
    return {
        **values,
        "labels": list_labels(match.metadata),
        "sentence": str(around),
        "marked": f"{around.before}«{around.text}»{around.after}",
    }


def list_labels(metadata: Mapping[str, Any]) -> list[str]:
    """Return the texts and truth values in metadata as ``name: value``, for counting.

    Dates, long texts and numbers are left out: their values hardly repeat.
    """
    labels = []
    for name, kind, value in leaves(metadata):
        if kind == "boolean":
            labels.append(f"{name}: {str(value).lower()}")
        elif kind in FORMS and len(str(value)) <= LABEL_CHARACTERS and not parse_date(value):
            labels.append(f"{name}: {value}")
    return labels
