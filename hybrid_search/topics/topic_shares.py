"""The shares of topics in all calls of a run, in each week, and in each value of a field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hybrid_search.topics.call_counts import ALL, WEEK
from hybrid_search.topics.logistic import Scores
from hybrid_search.topics.mention_calibration import MentionMap
from hybrid_search.topics.shares import (
    CallCounts,
    Share,
    StratumModel,
    compare_shares,
    count_answers_to_halve,
    estimate_share,
    list_log_odds,
)
from hybrid_search.topics.types import CallTables, Integers

CHANGES = {1: "more", -1: "fewer", 0: ""}


@dataclass(frozen=True, slots=True)
class GroupShare:
    """The share of calls of a week, or with a value of a field.

    Attributes:
        share: The share.
        change: ``more`` or ``fewer`` than the week before, if chance does not explain that; else
            empty.
    """

    share: Share
    change: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the share as a JSON object."""
        return {**self.share.to_dict(), "change": self.change}


@dataclass(frozen=True, slots=True)
class TopicShare:
    """The share of calls that have a topic.

    Attributes:
        share: The share of all calls.
        answers_to_halve: How many more answers would halve its interval; None if none would.
        groups: The shares by field and value; weeks are in their order.
    """

    share: Share
    answers_to_halve: int | None
    groups: Mapping[str, Mapping[str, GroupShare]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the shares as a JSON object."""
        groups = {
            name: {value: share.to_dict() for value, share in own.items()}
            for name, own in self.groups.items()
        }
        more = {"answers_to_halve": self.answers_to_halve, "by": groups}
        return {**self.share.to_dict(), **more}

    def __str__(self) -> str:
        judged, more = self.share.judged, self.answers_to_halve
        basis = f"by {judged:,} answers" if judged else "by the calibration of the model alone"
        halve = f"; {more:,} more would halve that" if more else ""
        return f"in {self.share} of calls ({basis}{halve})"


@dataclass(frozen=True, slots=True)
class CheckedSpans:
    """For which share of unlikely spans a topic's conditions hold, and where spans are unlikely.

    Attributes:
        share: The share, 0..1.
        log_odds: The log odds below which they are.
    """

    share: float
    log_odds: float


def estimate_topic(
    tables: CallTables, number: int, used_map: MentionMap, checked: CheckedSpans
) -> TopicShare | None:
    """Return the shares of the topic of this number; None if its map is only a rough one.

    Without an answer a share rests on the map and its errors alone.
    """
    if not used_map.is_known or not tables:
        return None
    counted = {
        name: {value: _check(table[:, number], checked) for value, table in own.items()}
        for name, own in tables.items()
    }
    everything = counted.pop(ALL)[ALL]
    model = StratumModel.from_map(used_map).add_answers(everything)
    probabilities = model.draw()
    groups: dict[str, Mapping[str, GroupShare]] = {}
    for name, own in counted.items():
        if name.startswith(WEEK):
            groups[name] = _compare_weeks(own, probabilities)
        else:
            shares = {value: estimate_share(counts, probabilities) for value, counts in own.items()}
            groups[name] = {value: GroupShare(share) for value, share in shares.items()}
    return TopicShare(
        estimate_share(everything, probabilities), count_answers_to_halve(model, everything), groups
    )


def _check(table: Integers, checked: CheckedSpans) -> CallCounts:
    """Return the calls with the unlikely ones reduced to those for which the conditions hold.

    The others are put where no span is likely enough. `table` is int64 ``[3, STRATA]``.
    """
    calls, judged, yes = table
    is_unlikely = list_log_odds() < checked.log_odds
    open_calls = np.where(is_unlikely, calls - judged, 0)
    failing = np.rint(open_calls * (1 - checked.share)).astype(np.int64)
    failing[0] = 0
    kept = calls - failing
    kept[0] += failing.sum()
    return CallCounts(kept, judged, yes)


def _compare_weeks(weeks: Mapping[str, CallCounts], probabilities: Scores) -> dict[str, GroupShare]:
    """Return the shares of the weeks in order, each compared with the one before."""
    shares: dict[str, GroupShare] = {}
    before = np.zeros_like(next(iter(weeks.values())).calls)
    for week in sorted(weeks):
        counts = weeks[week]
        change = compare_shares(before, counts.calls, probabilities)
        shares[week] = GroupShare(estimate_share(counts, probabilities), CHANGES[change])
        before = counts.calls
    return shares
