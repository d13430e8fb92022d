"""The written calls with rules: what they hold, and the figures of answers that are known."""

from __future__ import annotations

from collections import Counter

from benchmarks.quality import rules
from hybrid_search import Match, Topics
from hybrid_search.topics.match import Evidence

CALLS = rules.read_calls()


def test_forty_calls_say_which_of_nine_rules_hold() -> None:
    names = [rule.name for rule in Topics.load(rules.FOLDER / "topics.yaml").rules]
    assert len(CALLS) == 40
    assert len(names) == 9
    answers = Counter(name for call in CALLS for name in call["rules"])
    assert answers.keys() == set(names)
    assert min(answers.values()) >= 3
    assert sum(not call["rules"] for call in CALLS) >= 10
    for call in CALLS:
        times = [turn[name] for turn in call["turns"] for name in ("start_ms", "end_ms")]
        assert times == sorted(times)


def make_match(name: str, *probabilities: float) -> Match:
    parts = [Evidence("a", 0, None, 0, 1, "a", p, None, None) for p in probabilities]
    probability = probabilities[0] * (probabilities[1] if parts[1:] else 1)
    return Match(
        "r",
        "p",
        name,
        0,
        None,
        0,
        1,
        "a",
        1.0,
        probability,
        None,
        None,
        {},
        "m",
        None,
        tuple(parts),
    )


def test_answers_are_counted_and_their_probabilities_compared() -> None:
    matches = [make_match("x", 0.8, 0.5), make_match("y", 0.4)]
    found = {(match.id, match.topic): match for match in matches}
    right = {("x", "r"), ("z", "r")}
    assert rules.judge(found, right) == {
        "found": 2,
        "right": 1,
        "answers": 2,
        "precision": 0.5,
        "recall": 0.5,
    }
    figures = rules.judge_probabilities(found, right)
    # x is right with 0.4 = 0.8 * 0.5, or with 0.5; y is wrong with 0.4
    assert figures["several parts, product"]["brier"] == 0.36
    assert figures["several parts, least"]["brier"] == 0.25
    assert figures["one part"] == {"matches": 1, "right": 0, "expected": 0.4, "brier": 0.16}
