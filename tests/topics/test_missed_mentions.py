"""What is below the threshold: counted as mentions are, and an estimate of how many are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybrid_search import Match, Topics
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.search.calibration import Calibration
from hybrid_search.topics import mining
from hybrid_search.topics.call_counts import CallGroups
from hybrid_search.topics.match_file import Progress
from hybrid_search.topics.mention_calibration import MentionMap
from hybrid_search.topics.missed_mentions import count_log_odds, estimate_missed
from hybrid_search.topics.types import UnlikelySpans
from tests.topics.test_mining import CALIBRATION, ENCODERS, fill, make_documents, mine_blocks

EXACT = MentionMap(Calibration(1.0, 15.0), "tuned")
"""A map that is known for sure."""


def test_the_estimate_is_the_sum_of_the_probabilities() -> None:
    """40 spans at .2 and 300 at .01: 8 + 3 = 11 are mentions.

    The variance is 40 * .2 * .8 + 300 * .01 * .99 = 9.37, so 95 of 100 are within 6.0 of 11.
    """
    spans = UnlikelySpans(count_log_odds(np.repeat([0.2, 0.01], [40, 300])))
    missed = estimate_missed(spans, EXACT)
    assert missed is not None
    assert missed.expected == pytest.approx(11, rel=0.05)
    low, high = missed.interval
    assert low == pytest.approx(5, abs=1)
    assert high == pytest.approx(17, abs=1)


def test_the_interval_is_as_wide_as_the_map_is_uncertain() -> None:
    """Off by 1 in log odds is a factor of e^1.96 = 7.1, up and down."""
    spans = UnlikelySpans(count_log_odds(np.full(100_000, 0.001)))
    covariance = (1.0, 0.0, 0.0)
    missed = estimate_missed(spans, MentionMap(EXACT.calibration, "measured", covariance))
    assert missed is not None
    low, high = missed.interval
    assert high / missed.expected == pytest.approx(7.1, rel=0.15)
    assert missed.expected / low == pytest.approx(7.1, rel=0.15)


def test_only_the_share_for_which_the_conditions_hold_counts() -> None:
    counts = count_log_odds(np.full(1000, 0.1))
    everything = estimate_missed(UnlikelySpans(counts), EXACT)
    quarter = estimate_missed(UnlikelySpans(counts, checked=100, held=25), EXACT)
    assert everything is not None
    assert quarter is not None
    assert quarter.expected == pytest.approx(everything.expected / 4)
    assert quarter.interval[0] < quarter.expected < quarter.interval[1] < everything.expected


def test_nothing_is_said_of_a_map_that_is_not_known() -> None:
    spans = UnlikelySpans(count_log_odds(np.full(10, 0.1)))
    rough = MentionMap(EXACT.calibration, "rough", is_known=False)
    assert estimate_missed(spans, rough) is None
    nothing = estimate_missed(UnlikelySpans(), EXACT)
    assert nothing is not None
    assert (nothing.expected, nothing.interval) == (0.0, (0.0, 0.0))


HOLD: dict[str, Any] = {"name": "hold", "phrases": ["on hold"], "not": ["hold on"]}


@pytest.mark.parametrize("name", ENCODERS)
def test_what_is_counted_is_what_a_lower_threshold_adds(name: str) -> None:
    store, encoder = MemoryBackend(), ENCODERS[name]
    fill(store, encoder, make_documents(2))
    matches = _mine(store, name, 0.4)
    more = _mine(store, name, 0.0011)
    added = {(row.id, row.start, row.end) for row in more} - {
        (row.id, row.start, row.end) for row in matches
    }
    topics = Topics.load([{**HOLD, "threshold": 0.4}])
    blocks = mining.mine(
        store, encoder, lambda *_: CALIBRATION, topics, "calls", groups=CallGroups()
    )
    progress = start = Progress()
    found: list[Match] = []
    for block in blocks:
        progress = progress.add(block, start, 0)
        found += block.matches
    assert found == matches  # as without counting
    counts = progress.unlikely["hold"].counts
    assert 0 < len(added) <= sum(counts.values()) <= len(added) * 1.2  # from .001 on


def _mine(store: MemoryBackend, name: str, threshold: float) -> list[Any]:
    blocks = mine_blocks(store, ENCODERS[name], [{**HOLD, "threshold": threshold}])
    return [match for block in blocks for match in block.matches]


def test_conditions_are_looked_up_for_a_part() -> None:
    store, encoder = MemoryBackend(), ENCODERS["clauses"]
    fill(store, encoder, make_documents(0))
    phrases = ["refund", "money", "card", "order", "hold"]
    topics = Topics.load(
        [
            {"name": who, "phrases": phrases, "speaker": who, "threshold": 0.95}
            for who in ("agent", "nobody")
        ]
    )
    options: Any = {"groups": CallGroups()}
    progress = start = Progress()
    for block in mining.mine(store, encoder, lambda *_: CALIBRATION, topics, "calls", **options):
        progress = progress.add(block, start, 0)
    agent, nobody = progress.unlikely["agent"], progress.unlikely["nobody"]
    assert agent.counts == nobody.counts
    assert 0 < agent.held <= agent.checked < sum(agent.counts.values())
    assert nobody.held == 0 < nobody.checked
    missed = estimate_missed(nobody, EXACT)
    assert missed is not None
    assert missed.expected == 0
