"""Where rules hold: single cases with their arithmetic, and all findings by brute force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.topics.amounts import find_amounts
from hybrid_search.topics.match import Match
from hybrid_search.topics.rule import Expression, Kind, Length, Region
from hybrid_search.topics.rule_file import RuleReader
from hybrid_search.topics.rule_matches import CallSize, Finding, Mention, find_best

TOPICS = ["a", "b", "c"]
SIZE = CallSize(words=24, turns=12, start_ms=0, end_ms=24_000)


def make_mention(topic: str, place: int, probability: float, speaker: str = "x") -> Mention:
    """Return a mention of the two words from number `place`, in a call of a word a second.

    A turn has two words, of 5 characters each.
    """
    match = Match(
        topic=topic,
        phrase="p",
        id="call",
        turn=place // 2,
        speaker=speaker,
        start=5 * place,
        end=5 * place + 9,
        text="word word",
        cosine=0.5,
        probability=probability,
        start_ms=1000 * place,
        end_ms=1000 * (place + 2),
        metadata={},
        model="m",
    )
    return Mention(match, place, place + 1, 1000 * place, 1000 * (place + 2))


def read(rule: object) -> Expression:
    return RuleReader(TOPICS, {"rule": rule}).read("rule")


MENTIONS = [
    make_mention("a", 0, 0.9),
    make_mention("b", 4, 0.8, "y"),
    make_mention("a", 8, 0.6, "y"),
    make_mention("c", 14, 0.5),
]
"""Words 0 to 1, 4 to 5, 8 to 9 and 14 to 15, in turns 0, 2, 4 and 7."""


@pytest.mark.parametrize(
    ("rule", "words", "probability"),
    [
        ("a", [0], 0.9),
        ({"topic": "a", "by": "y"}, [8], 0.6),
        ({"topic": "a", "by": ["y", "z"], "in": "first 3 turns"}, [], 0),
        ({"topic": "c", "in": "last 10 words"}, [14], 0.5),
        ({"topic": "c", "in": "last 41 %"}, [], 0),  # of 24 words the last 9.84: from word 14.16
        ({"topic": "c", "in": "last 10 s"}, [14], 0.5),
        ({"topic": "c", "in": "last 9 s"}, [], 0),
        ({"all": ["a", "b", "c"]}, [0, 4, 14], 0.9 * 0.8 * 0.5),
        ({"all": ["a", "c"], "within": "8 words"}, [8, 14], 0.6 * 0.5),  # words 8 to 15
        ({"all": ["a", "c"], "within": "7 words"}, [], 0),
        ({"all": ["a", "c"], "within": "3 turns"}, [8, 14], 0.6 * 0.5),  # from turn 4 to turn 7
        ({"all": ["a", "c"], "within": "2 turns"}, [], 0),
        ({"all": ["a", "c"], "within": "8 s"}, [8, 14], 0.6 * 0.5),  # from 8 s to 16 s
        ({"all": ["a", "c"], "within": "7.9 s"}, [], 0),
        ({"any": ["a", "c"]}, [0, 14], 1 - 0.1 * 0.5),
        ({"any": ["a", {"topic": "a", "by": "y"}]}, [0], 0.9),  # the same topic counts once
        ({"then": ["b", "a"]}, [4, 8], 0.8 * 0.6),
        ({"then": ["c", "b"]}, [], 0),
        ({"then": [{"any": ["b", "c"]}, "a"]}, [4, 8], 0.8 * 0.6),  # not the likelier b or c
        ({"then": ["a", "a"]}, [0, 8], 0.9 * 0.6),
        ({"all": ["a", {"not": "b"}]}, [], 0),
        ({"all": ["a", {"not": "b"}], "within": "2 turns"}, [], 0),
        ({"all": ["a", {"not": "b"}], "within": "1 turn"}, [0], 0.9),
        ({"all": [{"topic": "a", "by": "y"}, {"not": "b"}], "within": "1 turn"}, [8], 0.6),
        ({"all": ["a", {"not": {"topic": "b", "by": "x"}}]}, [0], 0.9),
        ({"then": ["a", {"not": "b"}, "c"]}, [8, 14], 0.6 * 0.5),
        ({"then": ["a", "c", {"not": "b"}]}, [0, 14], 0.9 * 0.5),
        ({"then": [{"not": "b"}, "a", "c"]}, [0, 14], 0.9 * 0.5),
        ({"then": ["a", {"not": "c"}], "within": "5 s"}, [0], 0.9),
        ({"then": [{"any": ["a", "b"]}, "c"], "within": "11 words"}, [8, 14], 0.6 * 0.5),
        ({"then": [{"any": ["a", "b"]}, "c"], "within": "12 words"}, [4, 8, 14], 0.92 * 0.5),
        ({"all": ["a", "c"], "by": "x"}, [0, 14], 0.9 * 0.5),
        ({"all": ["b", "c"], "by": "x"}, [], 0),
    ],
)
def test_a_rule_has_its_most_probable_evidence(
    rule: object, words: list[int], probability: float
) -> None:
    finding = find_best(read(rule), MENTIONS, (), SIZE)
    found = finding.mentions if finding else ()
    assert [mention.first_word for mention in found] == words
    assert (finding.probability if finding else 0) == pytest.approx(probability)


def test_a_doubtful_span_of_what_must_not_be_said_makes_a_match_less_probable() -> None:
    rule = read({"then": ["a", {"not": "b"}, "c"]})
    doubtful = [make_mention("b", 10, 0.3), make_mention("b", 2, 0.4)]
    finding = find_best(rule, MENTIONS, doubtful, SIZE)
    assert finding
    # between word 8 and word 15 lies the one of 0.3
    assert finding.probability == pytest.approx(0.6 * 0.5 * (1 - 0.3))


def test_without_times_a_rule_in_turns_holds_and_one_in_seconds_does_not() -> None:
    untimed = [Mention(mention.match, mention.first_word) for mention in MENTIONS]
    assert find_best(read({"all": ["a", "b"], "within": "2 turns"}), untimed)
    assert not find_best(read({"all": ["a", "b"], "within": "99 s"}), untimed)
    assert not find_best(read({"topic": "a", "in": "first 99 s"}), untimed)


@pytest.mark.parametrize(
    ("amount", "found"),
    [("> 100", "£1,250.50"), ("> $100", None), ("<= 5 %", "5 percent"), ("= 12.5", "12,5")],
)
def test_an_amount_is_compared_with_the_numbers_of_the_turn(amount: str, found: str | None) -> None:
    amounts = tuple(find_amounts("they took £1,250.50, or 12,5, and 5 percent of it"))
    (mention, *_) = MENTIONS
    spoken = Mention(mention.match, amounts=amounts)
    finding = find_best(read({"topic": "a", "amount": amount}), [spoken])
    assert (finding.mentions[0].amount if finding else None) == found


def test_numbers_in_names_dates_and_times_are_no_amounts() -> None:
    text = "PW30 on 2026-03-01 at 10:30, call 555-0101, the 1st of 3, for 1,200 dollars or 1.5k"
    assert [(item.number, item.unit) for item in find_amounts(text)] == [(3, ""), (1200, "$")]


# The same by brute force: all findings, from all combinations of mentions.


def list_all(
    expression: Expression, said: Sequence[Mention], doubtful: Sequence[Mention]
) -> Iterator[Finding]:
    said, doubtful = (keep_conditions(expression, part) for part in (said, doubtful))
    parts = [part for part in expression.parts if part.kind != "not"]
    options = [list(list_all(part, said, doubtful)) for part in parts]
    if expression.kind == "topic":
        for mention in said:
            if mention.match.topic == expression.topic:
                yield make_finding([mention], mention.match.probability)
    elif expression.kind == "any":
        yield from join_any(parts, options)
    else:
        for chosen in product(*options):
            yield from combine(expression, chosen, said, doubtful)


def make_finding(mentions: Sequence[Mention], probability: float) -> Finding:
    ordered = sorted(set(mentions), key=lambda mention: mention.first_word)
    return Finding(tuple(ordered), max(ordered, key=lambda item: item.match.end), probability)


def keep_conditions(expression: Expression, mentions: Sequence[Mention]) -> list[Mention]:
    def is_kept(mention: Mention) -> bool:
        region = expression.region
        reach = region.length.number if region else 0
        is_there = {"first": mention.first_word < reach, "last": mention.first_word >= 24 - reach}
        has_speaker = not expression.speakers or mention.match.speaker in expression.speakers
        return has_speaker and (region is None or is_there[region.end])

    return list(filter(is_kept, mentions))


def join_any(parts: Sequence[Expression], options: Sequence[list[Finding]]) -> Iterator[Finding]:
    for chosen in product(*([None, *found] for found in options)):
        pairs = [(part, item) for part, item in zip(parts, chosen, strict=True) if item]
        # a part whose topics were named by an earlier part of the list is only taken alone
        named: set[str] = set()
        is_allowed = bool(pairs)
        for number, part in enumerate(parts):
            others = [item for item, _ in pairs[:1]]
            is_later = any(chosen[number] and chosen[before] for before in range(number))
            is_allowed = is_allowed and not (is_later and named & part.list_topics() and others)
            named |= part.list_topics()
        if is_allowed:
            failures = 1.0
            for _, item in pairs:
                failures *= 1 - item.probability
            yield make_finding([m for _, item in pairs for m in item.mentions], 1 - failures)


def combine(
    expression: Expression,
    chosen: Sequence[Finding],
    said: Sequence[Mention],
    doubtful: Sequence[Mention],
) -> Iterator[Finding]:
    probability = 1.0
    for item in chosen:
        probability *= item.probability
    both = make_finding([m for item in chosen for m in item.mentions], probability)
    within = expression.within
    if within and not measure(both.first, both.last, within) <= within.number:
        return
    pairs = pairwise(chosen)
    if expression.kind == "then" and any(one.end > other.start for one, other in pairs):
        return
    place = 0
    for part in expression.parts:
        if part.kind != "not":
            place += 1
            continue
        before = chosen[place - 1] if place else None
        after = chosen[place] if place < len(chosen) else None
        if expression.kind == "all":
            before = after = None
        denied = 0.0
        own_said, own_doubtful = (keep_conditions(part, group) for group in (said, doubtful))
        for item in list_all(part.parts[0], [*own_said, *own_doubtful], ()):
            low, high = limits(expression, both, before, after)
            if (
                low <= item.start
                and item.end <= high
                and near(expression, both, item, before, after)
            ):
                is_sure = set(item.mentions) <= set(own_said)
                denied = max(denied, 1.0 if is_sure else item.probability)
        probability *= 1 - denied
        if denied == 1.0:
            return
    yield make_finding(both.mentions, probability)


def limits(
    expression: Expression, both: Finding, before: Finding | None, after: Finding | None
) -> tuple[float, float]:
    return (before.start if before else -1.0, after.end if after else 1e9)


def near(
    expression: Expression,
    both: Finding,
    item: Finding,
    before: Finding | None,
    after: Finding | None,
) -> bool:
    """Tell whether what must not be said is near; between two parts it always is."""
    within = expression.within
    if within is None or (before and after):
        return True
    unit = 2 if within.unit == "turns" else 1
    early = both.first.first_word // unit - item.first.first_word // unit
    late = item.last.last_word // unit - both.last.last_word // unit
    is_early = before is not None or early <= within.number
    return is_early and (after is not None or late <= within.number)


def measure(first: Mention, last: Mention, within: Length) -> float:
    if within.unit == "turns":
        return last.match.turn - first.match.turn
    return last.last_word - first.first_word + 1  # words, or seconds: a word takes one


Spoken = tuple[str, int, tuple[float, str]]
"""A topic, a place, and the probability and the speaker."""

PROBABILITIES = st.integers(1, 19).map(lambda number: number / 20)
SPOKEN = st.lists(
    st.tuples(
        st.sampled_from(TOPICS), st.integers(0, 9), st.tuples(PROBABILITIES, st.sampled_from("xy"))
    ),
    min_size=4,
    max_size=6,
    unique_by=lambda item: item[:2],
)
NO_CONDITIONS: list[tuple[str, ...]] = [()] * 5
"""Conditions are rarer than none, or nothing would be found."""

LENGTHS = st.builds(Length, st.integers(1, 12), st.sampled_from(["s", "turns", "words"]))
REGIONS = st.builds(
    Region,
    st.sampled_from(["first", "last"]),
    st.integers(2, 20).map(lambda number: Length(number, "words")),
)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> Expression:
    kinds: list[Kind] = ["topic"] if depth == 0 else ["then", "all", "any", "then", "all"]
    topics: list[Kind] = ["topic"] * 5
    kind = draw(st.sampled_from(kinds if depth == 2 else topics + kinds))
    speakers = draw(st.sampled_from([*NO_CONDITIONS, ("x",)]))
    region = draw(st.sampled_from([None] * len(NO_CONDITIONS)) | REGIONS) if depth else None
    if kind == "topic":
        topic = draw(st.sampled_from(["a", "a", "b", "b", "c"]))
        return Expression("topic", topic, speakers=speakers, region=region)
    parts = draw(st.lists(expressions(depth - 1), min_size=2, max_size=depth + 1))
    if kind != "any" and draw(st.integers(0, 3)) == 0:
        denied = draw(expressions(0))
        parts.insert(draw(st.integers(0, len(parts))), Expression("not", parts=(denied,)))
    within = draw(st.none() | LENGTHS) if kind != "any" else None
    return Expression(kind, parts=tuple(parts), within=within, speakers=speakers, region=region)


@settings(max_examples=200, deadline=None)
@given(expressions(), SPOKEN, SPOKEN | st.just([]))
def test_the_best_finding_is_that_of_all_combinations(
    expression: Expression,
    spoken: list[Spoken],
    doubted: list[Spoken],
) -> None:
    said = [make_mention(topic, 2 * place, *rest) for topic, place, rest in sorted(spoken)]
    doubtful = [make_mention(topic, 2 * place + 1, *rest) for topic, place, rest in doubted]
    best = max((item.probability for item in list_all(expression, said, doubtful)), default=None)
    finding = find_best(expression, said, doubtful, SIZE)
    assert (finding.probability if finding else None) == pytest.approx(best)
