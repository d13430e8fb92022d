"""Read a file of matches and the sentences around them, and write the page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from hybrid_search.backends.base import Backend
from hybrid_search.errors import DocumentMissingError, UsageError, show_value
from hybrid_search.file_errors import explain_failure
from hybrid_search.ingest.shards import Shard
from hybrid_search.private_files import replace_file
from hybrid_search.search.hit import DocumentView
from hybrid_search.text.filters import list_values
from hybrid_search.text.name_lists import describe_fields
from hybrid_search.topics.match import Match, read_matches
from hybrid_search.topics.report.counts import (
    MatchCounts,
    ValueCounts,
    count_matches,
    find_date_field,
)
from hybrid_search.topics.run import MiningSummary
from hybrid_search.topics.surroundings import Surroundings, read_sentence

ReadDocument = Callable[[str], DocumentView]

READ_AT_ONCE = 500
"""Documents whose metadata is read at once."""


def check_fields(names: Sequence[str], fields: Mapping[str, str]) -> None:
    """Raise UsageError for a field that an index does not have, or that has no plain values."""
    for name in names:
        if fields.get(name, "object") == "object":
            raise UsageError(
                f"the report cannot count by {show_value(name)}: {describe_fields(fields, name)}"
            )


def write_report(
    path: Path,
    matches_file: Path,
    summary: MiningSummary,
    read_document: ReadDocument,
    *,
    index: str,
    model: str,
    by: Sequence[str] = (),
    date_field: str | None = None,
    values: ValueCounts | None = None,
) -> None:
    """Write the page of a file of matches, in JSON lines, in place of an earlier one.

    `read_document` returns a document by its id, or raises DocumentMissingError. Counted are the
    values of the metadata fields in `by`, of which `values` has the numbers of all documents, and
    weeks by `date_field`; None for the first whose values are dates. UsageError is raised if a file
    cannot be read or written.
    """
    from hybrid_search.topics.report.page import build_page  # jinja2, only if there is a report

    date_field = date_field or find_date_field(read_matches(matches_file))
    counts = count_matches(
        read_matches(matches_file),
        summary.topics.names,
        summary.progress.documents,
        date_field,
        by,
        values,
    )
    probabilities = summary.maps.describe(summary.topics) if summary.maps else ""
    page = build_page(
        counts,
        _read_sentences(counts, read_document),
        f"Index {index}, model {model}. Probabilities: {probabilities}.",
        index,
        summary.estimate_missed(),
    )
    failure = f"the report cannot be written to {path}"
    with explain_failure(failure, "free space, or name another file"):
        replace_file(path, page.encode("utf-8", "replace"))


def count_values(
    backend: Backend, index: str, shard: Shard, fields: Sequence[str]
) -> dict[str, Counter[str]]:
    """Return how many documents of a shard have each value of each of these metadata fields."""
    values: dict[str, Counter[str]] = {name: Counter() for name in fields}
    first_passages = (
        passage.key
        for passage in backend.iterate_passages(index)
        if passage.ordinal == 0 and shard.owns_id(passage.document_id)
    )
    while fields and (keys := list(islice(first_passages, READ_AT_ONCE))):
        for content in backend.fetch_contents(index, keys).values():
            metadata = {} if content.fault else json.loads(content.metadata)
            for name in fields:
                values[name].update(set(map(str, list_values(metadata, name))))
    return values


def _read_sentences(counts: MatchCounts, read_document: ReadDocument) -> dict[Match, Surroundings]:
    """Return the sentences around the mentions that are shown; each document is read once."""
    matches_by_id: dict[str, list[Match]] = {}
    for topic in counts.topics.values():
        for match in topic.list_likeliest():
            matches_by_id.setdefault(match.id, []).append(match)
    sentences: dict[Match, Surroundings] = {}
    for name, matches in matches_by_id.items():
        try:
            view = read_document(name)
        except DocumentMissingError:  # deleted since: the words are all that is known
            continue
        sentences |= {match: read_sentence(view, match) for match in matches}
    return sentences
