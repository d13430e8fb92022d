"""Count mentions: by topic, week, field and speaker, and topics in the same calls."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import combinations, islice

from hybrid_search.text.filters import leaves, list_values
from hybrid_search.text.values import CALL_DATES, parse_date
from hybrid_search.topics.match import Match

SHOWN_MENTIONS = 50
"""Mentions of a topic that the page shows: the most probable ones."""

PROBED_MATCHES = 1000
"""Matches in which a field with dates is looked for."""


@dataclass(slots=True)
class TopicCounts:
    """What was mined of one topic.

    Attributes:
        mentions: How many mentions.
        expected: The sum of their probabilities: so many of them are right on average.
        calls: The ids of the documents with a mention.
        weeks: In how many documents of each week, by its Monday.
        speakers: How many mentions by each speaker; "" for none.
        fields: In how many documents with each value of each field.
        likeliest: The mentions that are shown, as a heap of probability, number and match.
    """

    mentions: int = 0
    expected: float = 0.0
    calls: set[str] = field(default_factory=set)
    weeks: Counter[date] = field(default_factory=Counter)
    speakers: Counter[str] = field(default_factory=Counter)
    fields: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    likeliest: list[tuple[float, int, Match]] = field(default_factory=list)

    def list_likeliest(self) -> list[Match]:
        """Return the mentions that are shown, the most probable first."""
        return [match for _, _, match in sorted(self.likeliest, key=lambda row: (-row[0], -row[1]))]


@dataclass(frozen=True, slots=True)
class MatchCounts:
    """What a page says of some matches in numbers.

    Attributes:
        topics: The counts of each topic, by its name.
        documents: How many documents were looked at.
        date_field: The field that weeks are counted by; None if no field has dates.
        undated: How many documents with a mention have no date there.
        pairs: How many documents two topics are both in.
    """

    topics: Mapping[str, TopicCounts]
    documents: int
    date_field: str | None
    undated: int
    pairs: Mapping[tuple[str, str], int]

    @property
    def mentions(self) -> int:
        """How many mentions of all topics."""
        return sum(topic.mentions for topic in self.topics.values())

    @property
    def most_in_a_week(self) -> int:
        """In how many documents of one week a topic is at most; at least 1."""
        return max((n for topic in self.topics.values() for n in topic.weeks.values()), default=1)

    def list_weeks(self) -> list[date]:
        """Return the Mondays from the first to the last week that has a mention."""
        weeks = [week for counts in self.topics.values() for week in counts.weeks]
        if not weeks:
            return []
        count = (max(weeks) - min(weeks)).days // 7 + 1
        return [min(weeks) + timedelta(weeks=number) for number in range(count)]


def find_date_field(matches: Iterable[Match]) -> str | None:
    """Return the field whose values are all dates, `CALL_DATES` first; None if there is none."""
    kinds: dict[str, bool] = {}
    for match in islice(matches, PROBED_MATCHES):
        for name, _, value in leaves(match.metadata):
            if value is not None:
                kinds[name] = kinds.get(name, True) and parse_date(value) is not None
    dates = [name for name, are_dates in kinds.items() if are_dates]
    return next((name for name in (*CALL_DATES, *dates) if name in dates), None)


def count_matches(
    matches: Iterable[Match],
    topics: Sequence[str],
    documents: int,
    date_field: str | None,
    by: Sequence[str] = (),
) -> MatchCounts:
    """Return the counts of matches, which are read once, in any order.

    A document counts once for each topic, however many mentions it has.

    Args:
        matches: The matches.
        topics: The names of all topics; one without a match has counts of 0.
        documents: How many documents were looked at.
        date_field: The metadata field that weeks are counted by.
        by: Metadata fields whose values are counted.
    """
    counts = {name: TopicCounts() for name in topics}
    undated: set[str] = set()
    for number, match in enumerate(matches):
        topic = counts.setdefault(match.topic, TopicCounts())
        _add_mention(topic, match, number)
        if match.id in topic.calls:
            continue
        topic.calls.add(match.id)
        days = list(filter(None, map(parse_date, list_values(match.metadata, date_field or ""))))
        if days:
            topic.weeks[days[0] - timedelta(days=days[0].weekday())] += 1
        else:
            undated.add(match.id)
        for name in by:
            topic.fields[name].update(set(map(str, list_values(match.metadata, name))))
    pairs = {
        (first, second): len(counts[first].calls & counts[second].calls)
        for first, second in combinations(counts, 2)
    }
    ranked = sorted(pairs.items(), key=lambda item: -item[1])
    shared = {pair: count for pair, count in ranked if count}
    return MatchCounts(counts, documents, date_field, len(undated), shared)


def _add_mention(topic: TopicCounts, match: Match, number: int) -> None:
    topic.mentions += 1
    topic.expected += match.probability
    topic.speakers[match.speaker or ""] += 1
    # of equally likely ones the first: numbers are all different
    heapq.heappush(topic.likeliest, (match.probability, -number, match))
    if len(topic.likeliest) > SHOWN_MENTIONS:
        heapq.heappop(topic.likeliest)
