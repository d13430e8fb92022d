"""Count calls by stratum while an index is mined: all, and those of each week and metadata value.

A call belongs to the stratum of its best span (`hybrid_search.topics.shares`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.types import ScannedPassage
from hybrid_search.errors import UsageError, show_value
from hybrid_search.text.filters import list_values
from hybrid_search.text.name_lists import describe_fields
from hybrid_search.text.values import CALL_DATES, parse_date
from hybrid_search.text.word_codes import UNREADABLE
from hybrid_search.topics.judgments import Judgment, read_earlier
from hybrid_search.topics.logistic import Scores
from hybrid_search.topics.share_options import ShareOptions
from hybrid_search.topics.shares import STRATA, find_strata
from hybrid_search.topics.topic import Topic
from hybrid_search.topics.types import CallTables, Candidates, Integers, ScannedBlock

ALL = ""
"""The field, and its value, of all calls."""

WEEK = "week of "
"""The beginning of the name of weeks; the field of their dates follows."""

ReadMetadata = Callable[[Sequence[ScannedPassage]], Iterable[Mapping[str, Any]]]
"""Returns the metadata of each document, by one passage of it; empty if that is damaged."""


@dataclass(frozen=True, slots=True)
class CallGroups:
    """How calls are told apart beside their stratum.

    Attributes:
        answers: Whether a call has a topic, by its id and the topic's name, where that was asked.
        by: Metadata fields; calls are counted for each value.
        date_field: The metadata field by which they are counted for each week; None for no weeks.
    """

    answers: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    date_field: str | None = None

    @property
    def week_field(self) -> str:
        """The name under which weeks are counted."""
        return f"{WEEK}{self.date_field}"

    def list_groups(self, metadata: Mapping[str, Any]) -> set[tuple[str, str]]:
        """Return the pairs of field and value of a call; a week is named by its Monday."""
        groups = {(name, str(value)) for name in self.by for value in list_values(metadata, name)}
        if self.date_field:
            days = filter(None, map(parse_date, list_values(metadata, self.date_field)))
            if day := next(days, None):
                groups.add((self.week_field, str(day - timedelta(days=day.weekday()))))
        return groups


def collect_answers(judgments: Iterable[Judgment]) -> dict[str, dict[str, bool]]:
    """Return what was answered about whole calls, by the call's id and the topic's name."""
    answers: defaultdict[str, dict[str, bool]] = defaultdict(dict)
    for judgment in judgments:
        if judgment.call:
            answers[judgment.id][judgment.topic] = judgment.call == "yes"
    return dict(answers)


def choose_date_field(fields: Mapping[str, str]) -> str | None:
    """Return the field of an index that has dates, `CALL_DATES` first; None if there is none."""
    dates = sorted(name for name, kind in fields.items() if kind == "date")
    return next((name for name in (*CALL_DATES, *dates) if name in dates), None)


def open_groups(options: ShareOptions, fields: Mapping[str, str]) -> CallGroups:
    """Return how calls are counted, with the answers of the file of judgments, if it exists.

    Raises:
        UsageError: If a field is not among those of the index, has no plain values, or a line of
            the file is not a judgment.
    """
    by, date_field = tuple(options.get("by", ())), options.get("date")
    for name in (*by, *filter(None, [date_field])):
        if fields.get(name, "object") == "object":
            raise UsageError(
                f"calls cannot be counted by {show_value(name)}: {describe_fields(fields, name)}"
            )
    path = options.get("judgments")
    return CallGroups(collect_answers(read_earlier(path) if path else []), by, date_field)


def add_tables(first: CallTables, second: CallTables) -> CallTables:
    """Return the sums of two tables of calls."""
    summed = {name: dict(values) for name, values in first.items()}
    for name, values in second.items():
        own = summed.setdefault(name, {})
        for value, counts in values.items():
            own[value] = own[value] + counts if value in own else counts
    return summed


class CallCounter:
    """Counts the documents of a run when all their passages were looked at.

    Args:
        topics: The topics.
        groups: How calls are told apart.
        read_metadata: Reads the metadata of documents; called only if it is needed.
    """

    def __init__(
        self, topics: Sequence[Topic], groups: CallGroups, read_metadata: ReadMetadata
    ) -> None:
        self._topics, self._groups, self._read_metadata = topics, groups, read_metadata
        self._passages: dict[int, ScannedPassage] = {}

    def note(self, block: ScannedBlock) -> None:
        """Remember a passage of each document of a block, without its codes."""
        numbers, places = np.unique(block.documents, return_index=True)
        for number, place in zip(numbers.tolist(), places.tolist(), strict=True):
            if number not in self._passages:
                self._passages[number] = replace(block.passages[place], tokens=UNREADABLE)

    def find_asked(self, spans: Candidates) -> NDArray[np.bool_]:
        """Return which spans are of a call and topic that was asked about, bool ``[n]``."""
        answers = self._groups.answers
        if not answers:
            return np.zeros(len(spans), dtype=np.bool_)
        rows = zip(spans.topics.tolist(), spans.documents.tolist(), strict=True)
        asked = [
            self._topics[topic].name in answers.get(self._passages[number].document_id, ())
            for topic, number in rows
        ]
        return np.array(asked, dtype=np.bool_)

    def count(self, documents: int, spans: Candidates, log_odds: Scores) -> CallTables:
        """Return the table of the documents up to a number that were not counted yet.

        `spans` are all that count of these documents, and `log_odds` theirs, float64 ``[n]``.
        """
        done = {number: row for number, row in self._passages.items() if number < documents}
        for number in done:
            del self._passages[number]
        columns = {number: column for column, number in enumerate(done)}
        best = np.full((len(self._topics), len(done)), -np.inf)
        places = np.array([columns[number] for number in spans.documents.tolist()], dtype=np.int64)
        np.maximum.at(best, (spans.topics, places), log_odds)
        return self._count_groups(list(done.values()), find_strata(best))

    def _count_groups(self, rows: Sequence[ScannedPassage], strata: Integers) -> CallTables:
        """Return the table of documents, by the stratum of each topic and document."""
        if not rows:
            return {}
        cells = strata + STRATA * np.arange(len(self._topics))[:, None]
        kinds = (np.ones(cells.shape, dtype=np.bool_), *self._find_answers(rows))
        tables: defaultdict[str, dict[str, Integers]] = defaultdict(dict)
        size = len(self._topics) * STRATA
        for (name, value), columns in self._list_members(rows).items():
            own = cells[:, columns]
            counted = [np.bincount(own[kind[:, columns]], minlength=size) for kind in kinds]
            tables[name][value] = np.stack(counted).reshape(len(kinds), -1, STRATA)
        return dict(tables)

    def _find_answers(
        self, rows: Sequence[ScannedPassage]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which calls have an answer, and which have the topic, ``[topics, documents]``."""
        is_judged = np.zeros((len(self._topics), len(rows)), dtype=np.bool_)
        has_topic = is_judged.copy()
        for column, row in enumerate(rows):
            answers = self._groups.answers.get(row.document_id, {})
            for number, topic in enumerate(self._topics if answers else ()):
                is_judged[number, column] = topic.name in answers
                has_topic[number, column] = answers.get(topic.name, False)
        return is_judged, has_topic

    def _list_members(self, rows: Sequence[ScannedPassage]) -> dict[tuple[str, str], list[int]]:
        """Return the places of the documents of each field and value."""
        members: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        members[ALL, ALL] = list(range(len(rows)))
        if self._groups.by or self._groups.date_field:
            for column, metadata in enumerate(self._read_metadata(rows)):
                for group in self._groups.list_groups(metadata):
                    members[group].append(column)
        return members
