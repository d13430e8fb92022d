"""Rules in a file of topics: what they say, and one line for each possible mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid_search import Topics
from hybrid_search.errors import UsageError
from tests.helpers.topic_files import load_and_fail

PARTS = """
- {name: refund, phrases: [I want my money back]}
- {name: sorry, phrases: [I am sorry about that]}
- {name: charge, phrases: [I was charged]}
"""

RULES = {
    "{all: [refund, sorry], within: 3 turns}": "refund and sorry, all within 3 turns",
    "{then: [refund, not: sorry, charge], within: 120 s, by: customer}": (
        "(refund, then no sorry, then charge) by customer, all within 120 s"
    ),
    "{any: [refund, {topic: charge, amount: '> £1,200'}]}": (
        "refund or charge with a number > £1,200"
    ),
    "{topic: charge, by: [agent, bot], in: first 60 s}": (
        "charge by agent or bot in the first 60 s"
    ),
    "{all: [refund, not: {any: [sorry, charge], in: last 20 %}]}": (
        "refund and no (sorry or charge) in the last 20 %"
    ),
    "{all: [other, charge], in: first 1 turn}": (
        "((refund or sorry) and charge) in the first 1 turn"
    ),
    "{all: [refund, charge], within: 40 words}": "refund and charge, all within 40 words",
    "other": "refund or sorry",
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_explained_in_one_sentence(tmp_path: Path, rule: str) -> None:
    path = tmp_path / "topics.yaml"
    path.write_text(
        f"{PARTS}- {{name: r, rule: {rule}, threshold: 0.2, notes: n}}\n"
        "- {name: other, rule: {any: [refund, sorry]}}"
    )
    topics = Topics.load(path)
    assert topics.names == ["refund", "sorry", "charge", "r", "other"]
    assert len(topics) == 3  # only topics are compared with what was said
    assert str(topics.rules[0]) == f"r: a call that has {RULES[rule]}"
    assert (topics.rules[0].threshold, topics.rules[0].notes) == (0.2, "n")


MISTAKES = {
    "rule: refnud": "rule names 'refnud', which is no topic of the file: did you mean 'refund'?",
    "rule: {all: [refund, [sorry]]}": "rule has ['sorry']: it must be the name of a topic, or a",
    "rule: 3": "rule has 3: it must be the name of a topic, or a mapping with all, any,",
    "rule:": "rule has None: it must be the name of a topic",
    "rule: r": "rule needs itself: 'r' which needs 'r'; leave one of them out",
    "rule: {any: [refund, s]}": "rule needs itself: 'r' which needs 's' which needs 'r'; leave",
    "rule: {all: [refund, sorry], near: 3 s}": "rule has the unknown key 'near': use topic, all",
    "rule: {all: [refund, sorry], withn: 3 s}": "unknown key 'withn': did you mean 'within'?",
    "rule: {all: [refund, sorry], no: refund}": "rule has the unknown key False: the keys are",
    "rule: {within: 3 s}": "with none of them: each mapping needs one of topic, all, any,",
    "rule: {all: [refund, sorry], any: [refund, sorry]}": "with all and any: each mapping needs",
    "rule: {topic: [refund]}": "topic is ['refund']: it must be the name of a topic",
    "rule: {all: []}": "all is []: it must be a list of at least two parts",
    "rule: {any: refund}": "any is 'refund': it must be a list of at least two parts",
    "rule: {then: [refund]}": "then has one part, 'refund': give at least two",
    "rule: {all: [refund, refund]}": "all has 'refund' twice: keep one of them",
    "rule: {not: refund}": "not alone has no evidence; put it into all or then, beside a topic",
    "rule: {all: [not: refund, not: sorry]}": "not alone has no evidence; add a topic that is said",
    "rule: {any: [refund, not: sorry]}": "not belongs into all or then",
    "rule: {all: [refund, not: [sorry, charge]]}": "it takes one part; write not: {any: [...]}",
    "rule: {all: [refund, not: {all: [sorry, not: charge]}]}": "which has a not itself: leave both",
    "rule: {all: [refund, sorry], within: 2 min}": "within is '2 min': it must be a number of s,",
    "rule: {all: [refund, sorry], within: 3}": "within is 3: it must be a number of s, turns or",
    "rule: {all: [refund, sorry], within: 0 s}": "within is '0 s': it must be a number of s, turns",
    "rule: {all: [refund, sorry], within: 1.5 turns}": "within is '1.5 turns': it must be a number",
    "rule: {all: [refund, sorry], within: 20 %}": "such as 120 s, 3 turns or 40 words",
    "rule: {any: [refund, sorry], within: 3 s}": "but there is one part: it belongs beside all or",
    "rule: {topic: refund, by: []}": "by is []: it must be a speaker, or a list of some",
    "rule: {topic: refund, by: 3}": "by is 3: it must be a speaker, or a list of some",
    "rule: {topic: refund, in: 60 s}": "in is '60 s': it must be first or last with a number of s,",
    "rule: {topic: refund, in: last 100 %}": "in is 'last 100 %': it must be first or last with",
    "rule: {topic: charge, amount: 100}": "amount is 100: it must be a comparison with one number,",
    "rule: {topic: charge, amount: '> ten'}": "amount is '> ten': it must be a comparison with one",
    "rule: {all: [refund, charge], amount: '> 1'}": "write {topic: NAME, amount: '> 1'}",
    f"rule: {{any: {['refund'] * 101}}}": "any has 101 parts: it may have at most 100",
    "rule: " + "{any: [sorry, " * 60 + "refund" + "]}" * 60: "nested more than 20 times",
    "{rule: refund, phrases: [a]}": "phrases and rule are both given: give one of them",
    "{rule: refund, speaker: agent}": "speaker is 'agent', beside rule: it belongs to the rule's",
    "{rule: refund, threshold: 2}": "threshold is 2: it must be a number between 0 and 1",
    "{rule: refund, notse: a}": "unknown key 'notse': did you mean 'notes'?",
    "{rule: refund, colour: a}": "unknown key 'colour': the keys are name, rule, threshold, notes",
}


@pytest.mark.parametrize("text", MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_in_a_rule_is_one_line_with_its_topic(tmp_path: Path, text: str) -> None:
    path = tmp_path / "topics.yaml"
    fields = text.strip("{}") if text.startswith("{") else text
    path.write_text(f"{PARTS}- {{name: s, rule: {{any: [sorry, r]}}}}\n- {{name: r, {fields}}}")
    message = load_and_fail(path)
    assert "'r'" in message
    assert MISTAKES[text] in message


def test_a_rule_and_a_topic_of_one_name_are_a_mistake() -> None:
    topics: list[dict[str, object]] = [
        {"name": "a", "phrases": ["b"]},
        {"name": "a", "rule": "a"},
    ]
    with pytest.raises(UsageError, match="2 topics have the name 'a': give each its own"):
        Topics.load(topics)


def test_rules_that_name_each_other_many_times_are_refused_and_not_written_out() -> None:
    """Twenty rules that each name the one before twice would be a million topics."""
    topics: list[dict[str, object]] = [{"name": name, "phrases": [name]} for name in ("a", "b")]
    topics.append({"name": "r0", "rule": {"all": ["a", "b"]}})
    for number in range(1, 20):
        before = f"r{number - 1}"
        rule = {"any": [before, {"all": [before, "a"]}]}
        topics.append({"name": f"r{number}", "rule": rule})
    with pytest.raises(UsageError, match="it may have at most 100"):
        Topics.load(topics)
