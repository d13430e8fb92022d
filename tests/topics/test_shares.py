"""Shares of topics: their estimates and intervals, and which answers narrow them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hybrid_search import Match
from hybrid_search.client import Client
from hybrid_search.search.calibration import Calibration
from hybrid_search.topics.judging_queue import make_judgment
from hybrid_search.topics.judgments import append_judgments, read_judgments
from hybrid_search.topics.mention_calibration import MentionMap
from hybrid_search.topics.share_queue import ShareQueue, find_stratum
from hybrid_search.topics.shares import (
    DEVIATION,
    STRATA,
    AnswerPlan,
    CallCounts,
    StratumModel,
    compare_shares,
    count_answers_to_halve,
    estimate_share,
    find_strata,
    list_log_odds,
)
from hybrid_search.topics.types import Integers
from tests.helpers.cli import invoke_cli

MAP = MentionMap(Calibration(1.0, 16.0), "measured", (1.0, 0.0, 0.0))
"""A map whose intercept may be off by 1."""

EVEN, LIKELY = 15, 21
"""The strata of log odds .25 and 3.25."""


def count(calls: dict[int, int], judged: dict[int, int], yes: dict[int, int]) -> CallCounts:
    return CallCounts(*(spread(row) for row in (calls, judged, yes)))


def spread(numbers: dict[int, int]) -> Integers:
    row = np.zeros(STRATA, dtype=np.int64)
    row[list(numbers)] = list(numbers.values())
    return row


# The estimate


def test_a_stratum_is_half_a_unit_of_log_odds_and_the_first_has_no_span() -> None:
    strata = find_strata(np.array([-np.inf, -7.0, -6.6, 0.3, 3.0, 40.0]))
    assert strata.tolist() == [0, 1, 1, EVEN, LIKELY, STRATA - 1]
    assert list_log_odds()[[EVEN, LIKELY]].tolist() == [0.25, 3.25]


@pytest.mark.parametrize("stratum", [3, 9, EVEN, LIKELY])
def test_without_an_answer_the_share_is_the_mean_of_the_probabilities(stratum: int) -> None:
    """The log odds may be off; their mean is such that the mean probability is the map's."""
    counts = count({stratum: 10_000}, {}, {})
    share = estimate_share(counts, StratumModel.from_map(MAP).draw())
    probability = 1 / (1 + np.exp(-list_log_odds()[stratum]))
    assert share.share == pytest.approx(probability, rel=0.3, abs=0.03)
    assert share.low < probability < share.high


def test_answers_leave_the_error_of_a_sample() -> None:
    """30 of 100 of 1,000 calls have the topic.

    The interval is 1.645 * sqrt(.9 * .3 * .7 / 100) = .0715 up and down.
    .9 is the correction for a finite population. The prior, which says .56, adds a variance of log
    odds of 1 + 1.96 to one of 1 / 21: it moves the share by 1 in 60.
    """
    counts = count({EVEN: 1000}, {EVEN: 100}, {EVEN: 30})
    share = estimate_share(counts, StratumModel.from_map(MAP).add_answers(counts).draw())
    assert share.share == pytest.approx(0.30, abs=0.02)
    assert share.high - share.low == pytest.approx(0.143, rel=0.08)
    assert (share.calls, share.judged) == (1000, 100)


def test_calls_that_are_all_known_leave_no_doubt() -> None:
    counts = count({EVEN: 10}, {EVEN: 10}, {EVEN: 3})
    share = estimate_share(counts, StratumModel.from_map(MAP).add_answers(counts).draw())
    assert (share.share, share.low, share.high) == (0.3, 0.3, 0.3)
    nothing = estimate_share(count({}, {}, {}), StratumModel.from_map(MAP).draw())
    assert (nothing.share, nothing.calls) == (0.0, 0)


def test_an_answer_says_more_of_its_own_stratum_than_of_far_ones() -> None:
    counts = count({}, {EVEN: 50}, {EVEN: 5})
    before, after = StratumModel.from_map(MAP), None
    after = before.add_answers(counts)
    moved = before.mean - after.mean
    assert moved[EVEN] > moved[EVEN + 4] > moved[STRATA - 1] > 0


def test_an_interval_of_nine_tenths_holds_the_share_nine_times_of_ten() -> None:
    """Topics whose log odds are as far off as the prior says, 12 answers each as they are planned.

    The share of 300 draws is within .9 by 2.6 standard errors, sqrt(.09 / 300) = .0173.
    """
    generator = np.random.default_rng(5)
    prior = StratumModel.from_map(MAP)
    calls = spread({0: 600, 5: 200, 10: 100, EVEN: 60, LIKELY: 40})
    truths = generator.multivariate_normal(prior.mean, prior.covariance, 300)
    held = 0
    for truth in truths:
        has_topic = generator.binomial(calls, 1 / (1 + np.exp(-truth)))
        judged, yes = np.zeros_like(calls), np.zeros_like(calls)
        for _ in range(3):
            counts = CallCounts(calls, judged, yes)
            plan = AnswerPlan(prior.add_answers(counts), counts)
            for _ in range(4):
                stratum = int(plan.rank_strata()[0])
                plan.add(stratum, 1)
                left = has_topic[stratum] - yes[stratum], calls[stratum] - judged[stratum]
                yes[stratum] += generator.random() < left[0] / left[1]
                judged[stratum] += 1
        counts = CallCounts(calls, judged, yes)
        share = estimate_share(counts, prior.add_answers(counts).draw())
        held += share.low <= has_topic.sum() / calls.sum() <= share.high
    assert held / 300 == pytest.approx(0.9, abs=0.045)


# Which answers


def test_answers_are_wanted_where_many_calls_are_doubtful() -> None:
    model = StratumModel.from_map(MAP)
    doubtful = count({3: 100, EVEN: 100, LIKELY: 100}, {}, {})
    assert AnswerPlan(model, doubtful).rank_strata().tolist() == [EVEN, LIKELY, 3]
    rare = count({0: 9000, 3: 100_000, EVEN: 10}, {EVEN: 10}, {EVEN: 5})
    assert AnswerPlan(model.add_answers(rare), rare).rank_strata().tolist() == [3]


def test_as_many_answers_are_needed_as_make_the_variance_a_quarter() -> None:
    """One large stratum: n answers make the precision 1 / v + n w, wanted is 4 / v.

    v = 1 + 1.96 = 2.96 and w, the slope of the mean probability .562, is .246 / sqrt(1 + .346 v) =
    .173, so that n = 3 / (v w) = 5.9.
    """
    counts = count({EVEN: 10_000_000}, {}, {})
    assert pytest.approx(1.96) == DEVIATION**2
    assert count_answers_to_halve(StratumModel.from_map(MAP), counts) == 6


def test_no_answers_can_halve_what_cannot_be_asked_about() -> None:
    counts = count({0: 1000, EVEN: 1}, {}, {})
    assert count_answers_to_halve(StratumModel.from_map(MAP), counts) is None


# Changes


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ((90, 10), (60, 40), 1),
        ((60, 40), (90, 10), -1),
        ((90, 10), (90, 10), 0),
        ((9, 1), (6, 4), 0),
    ],
)
def test_a_change_is_one_only_if_chance_does_not_explain_it(
    before: tuple[int, int], after: tuple[int, int], change: int
) -> None:
    """40 of 100 against 10: the difference .3 is 5.2 standard errors; of ten calls each, 1.6."""
    weeks = [spread(dict(zip((3, LIKELY), week, strict=True))) for week in (before, after)]
    probabilities = StratumModel.from_map(MAP).draw()
    assert compare_shares(weeks[0], weeks[1], probabilities) == change


def test_one_call_in_a_small_week_is_no_change() -> None:
    """One call in ten, and none in the week before: by chance alone it is in one of both weeks."""
    without, with_one = spread({3: 10}), spread({3: 9, LIKELY: 1})
    probabilities = StratumModel.from_map(MAP).draw()
    assert compare_shares(without, with_one, probabilities) == 0
    assert compare_shares(with_one, without, probabilities) == 0


def test_weeks_of_the_same_calls_are_seldom_called_a_change() -> None:
    """At most one in twenty, and of 400 pairs by chance at most 30 (mean 20, 2.3 deviations)."""
    generator = np.random.default_rng(0)
    probabilities = StratumModel.from_map(MAP).draw()
    changes = 0
    for _ in range(400):
        share = generator.choice([0.02, 0.1, 0.3])
        weeks = generator.multinomial(30, [1 - share, share], size=2)
        before, after = (spread(dict(zip((3, LIKELY), week, strict=True))) for week in weeks)
        changes += compare_shares(before, after, probabilities) != 0
    assert changes <= 30


def test_a_week_without_calls_is_no_change() -> None:
    week = spread({LIKELY: 100})
    assert compare_shares(spread({}), week, StratumModel.from_map(MAP).draw()) == 0


# The queue


def make_match(number: int, probability: float) -> Match:
    name, words, times = f"call-{number}", (3, 9, "abcdef"), (None, None)
    return Match("refund", "x", name, 0, None, *words, 0.5, probability, *times, {}, "m")


def test_calls_of_a_stratum_are_drawn_whatever_their_probability() -> None:
    """30 answers of 200 calls of a stratum: the mean rank is near 100, as 30 random ones have it.

    Its standard error is 200 / sqrt(12 * 30) = 10.5.
    """
    matches = [make_match(number, 0.51 + 0.0005 * number) for number in range(200)]
    strata = {find_stratum(match) for match in matches}
    assert len(strata) == 1
    calls = {"refund": spread({strata.pop(): 200})}
    queue = ShareQueue(matches, [], calls, {"refund": StratumModel.from_map(MAP)})
    ranks = []
    for _ in range(30):
        match = queue.choose()
        assert match is not None
        ranks.append(matches.index(match))
        queue.answer(match, is_mention=False)
    assert np.mean(ranks) == pytest.approx(100, abs=27)
    assert queue.estimate(matches[0]) < 0.1
    assert queue.undo() == ("answer", match)


def test_calls_with_an_answer_are_not_asked_about_again() -> None:
    matches = [make_match(number, 0.6) for number in range(5)]
    judgments = [make_judgment(matches[1], "no", "yes"), make_judgment(matches[2], "yes")]
    calls = {"refund": spread({EVEN: 5})}
    queue = ShareQueue(matches, judgments, calls, {"refund": StratumModel.from_map(MAP)})
    assert len(queue) == 4  # a judgment of a span alone says nothing of its call


# The commands

TOPICS = [{"name": "refund", "phrases": ["I want my money back"], "threshold": 0.2}]


def test_answers_about_calls_are_written_and_correct_the_share(
    sample_url: str, sample: Client, tmp_path: Path
) -> None:
    path, topics = tmp_path / "judgments.jsonl", tmp_path / "topics.json"
    topics.write_text(json.dumps(TOPICS))
    options = ("--topics", str(topics), "--url", sample_url, "--judgments", str(path))
    answers = "n\nn\n" * 12 + "n\ny\ny\nu\nn\ns\nq\n"
    result = invoke_cli("judge", *options, "--shares", "--json", stdin=answers)
    assert result.json["answered"] == 13
    judgments = read_judgments(path)
    assert [row.call for row in judgments] == ["no"] * 12 + ["yes"]
    assert {row.answer for row in judgments} == {"no"}
    whole = [json.loads(line) for line in result.stdout.splitlines()[1:4:2]]
    assert all(row["call"] == sample.open_document(row["id"]).text for row in whole)
    before = sample.estimate_shares(topics, judgments=tmp_path / "none")["refund"]
    after = sample.estimate_shares(topics, judgments=path)["refund"]
    assert before
    assert after
    assert "by the calibration of the model alone" in str(before)
    assert (before.share.judged, after.share.judged) == (0, 13)
    assert after.share.share < before.share.share
    mined = invoke_cli("mine", *options, "--out", str(tmp_path / "matches.jsonl"))
    assert mined.json["shares"]["refund"] == after.to_dict()
    assert "of calls (by 13 answers" in mined.stderr


def test_shares_of_values_and_weeks_are_of_all_calls(sample: Client) -> None:
    share = sample.estimate_shares(TOPICS, by=["sector"], date="date")["refund"]
    assert share
    sectors, weeks = share.groups["sector"], share.groups["week of date"]
    assert sum(group.share.calls for group in sectors.values()) == share.share.calls == 88
    mean = sum(group.share.share * group.share.calls for group in sectors.values()) / 88
    assert mean == pytest.approx(share.share.share)
    assert list(weeks) == sorted(weeks)


def test_conditions_of_a_topic_hold_for_calls_below_its_threshold(sample: Client) -> None:
    topics = [{**TOPICS[0], "threshold": 0.999, "where": {"sector": "none"}}]
    share = sample.estimate_shares(topics)["refund"]
    assert share
    assert share.share.share < 0.01


def test_answers_of_other_calls_are_passed_over(sample: Client, tmp_path: Path) -> None:
    path = tmp_path / "judgments.jsonl"
    append_judgments(path, [make_judgment(make_match(1, 0.5), "yes", "yes")])
    share = sample.estimate_shares(TOPICS, judgments=path)["refund"]
    assert share
    assert share.share.judged == 0
