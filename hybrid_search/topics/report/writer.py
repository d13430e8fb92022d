"""Read a file of matches and the sentences around them, and write the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hybrid_search.errors import DocumentMissingError
from hybrid_search.file_errors import explain_failure
from hybrid_search.private_files import replace_file
from hybrid_search.search.hit import DocumentView
from hybrid_search.topics.call_counts import CallGroups
from hybrid_search.topics.match import Match, read_matches
from hybrid_search.topics.report.counts import MatchCounts, count_matches
from hybrid_search.topics.run import MiningSummary
from hybrid_search.topics.surroundings import Surroundings, read_sentence

ReadDocument = Callable[[str], DocumentView]


def write_report(
    path: Path,
    matches_file: Path,
    summary: MiningSummary,
    read_document: ReadDocument,
    *,
    index: str,
    model: str,
    groups: CallGroups,
) -> None:
    """Write the page of a file of matches, in JSON lines, in place of an earlier one.

    `read_document` returns a document by its id, or raises DocumentMissingError. `groups` are those
    by which the run counted calls. UsageError is raised if a file cannot be read or written.
    """
    from hybrid_search.topics.report.page import build_page  # jinja2, only if there is a report

    counts = count_matches(
        read_matches(matches_file),
        summary.topics.names,
        summary.progress.documents,
        groups.date_field,
        groups.by,
    )
    probabilities = summary.maps.describe(summary.topics) if summary.maps else ""
    page = build_page(
        counts,
        _read_sentences(counts, read_document),
        f"Index {index}, model {model}. Probabilities: {probabilities}.",
        index,
        summary.estimate_missed(),
        summary.estimate_shares(),
    )
    failure = f"the report cannot be written to {path}"
    with explain_failure(failure, "free space, or name another file"):
        replace_file(path, page.encode("utf-8", "replace"))


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
