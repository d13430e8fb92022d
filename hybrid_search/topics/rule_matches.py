"""Find where a rule holds in a document: a pure function over the mentions of its topics.

An expression has *findings*: mentions that together fulfil it, with a probability, taking mentions
as independent. All parts are right with the product of their probabilities, any of them with
1 - ∏(1 - p), and a ``not`` with 1 - p of the most probable finding of what must not be call. These
are the rules of extensional evaluation in a probabilistic database (Fuhr and Rölleke, "A
probabilistic relational algebra for the integration of information retrieval and database
systems", 1997; Dalvi and Suciu, "Efficient query evaluation on probabilistic databases", 2007).
They are exact as long as no mention counts twice.

Nothing is sampled. A finding is dropped only for a better one: as probable, and inside the same
words. Whatever order, distance or absence another part asks for, the better one fulfils it too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from hybrid_search.topics.amounts import Amount
from hybrid_search.topics.match import Match
from hybrid_search.topics.rule import Comparison, Expression, Length, Region


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention of a topic, and its place in the document.

    Attributes:
        match: The mention.
        first_word: The number of its first word in the document, from 0.
        last_word: The number of its last word.
        start_ms: When it begins, and no earlier than what stands before it; None if unknown.
        end_ms: When it ends, in the same way.
        amounts: The numbers in its words, and then the others of its turn.
        amount: The text of the one that an expression asked for.
    """

    match: Match
    first_word: int = 0
    last_word: int = 0
    start_ms: int | None = None
    end_ms: int | None = None
    amounts: tuple[Amount, ...] = ()
    amount: str | None = None


@dataclass(frozen=True, slots=True)
class CallSize:
    """The size of a document: its words, its turns, and when it begins and ends, if known."""

    words: int = 0
    turns: int = 0
    start_ms: int | None = None
    end_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Mentions that fulfil an expression.

    Attributes:
        mentions: The mentions, in the order of the text.
        last: The one that ends last.
        probability: How likely they fulfil it, 0..1.
    """

    mentions: tuple[Mention, ...]
    last: Mention
    probability: float

    @property
    def first(self) -> Mention:
        """The mention that begins first."""
        return self.mentions[0]

    @property
    def start(self) -> int:
        """Where the first mention begins in the text."""
        return self.mentions[0].match.start

    @property
    def end(self) -> int:
        """Where the last one ends."""
        return self.last.match.end

    def join(self, other: Finding, probability: float) -> Finding:
        """Return the mentions of both, with this probability."""
        mentions = dict.fromkeys(self.mentions + other.mentions)
        ordered = sorted(mentions, key=lambda item: (item.match.start, item.match.end))
        last = self.last if self.end >= other.end else other.last
        return Finding(tuple(ordered), last, probability)


@dataclass(frozen=True, slots=True)
class _CallMentions:
    """What is said in the part of a document that an expression looks at.

    `doubtful` are mentions below the thresholds of their topics: they count only against a ``not``.
    """

    mentions: Sequence[Mention]
    doubtful: Sequence[Mention]
    size: CallSize

    def restrict(self, expression: Expression) -> _CallMentions:
        """Return what fulfils the conditions of an expression."""
        has_times = expression.within is not None and expression.within.unit == "s"
        if not (expression.speakers or expression.region or has_times):
            return self

        def fulfils(mention: Mention) -> bool:
            speakers, region = expression.speakers, expression.region
            is_timed = None not in (mention.start_ms, mention.end_ms)
            return (
                (not speakers or mention.match.speaker in speakers)
                and (region is None or _is_inside(mention, region, self.size))
                and (is_timed or not has_times)
            )

        doubtful = [mention for mention in self.doubtful if fulfils(mention)]
        return replace(self, mentions=list(filter(fulfils, self.mentions)), doubtful=doubtful)

    def add_doubtful(self) -> _CallMentions:
        """Return the same, where doubtful mentions are mentions."""
        return replace(self, mentions=[*self.mentions, *self.doubtful], doubtful=())


def find_best(
    expression: Expression,
    mentions: Sequence[Mention],
    doubtful: Sequence[Mention] = (),
    size: CallSize = CallSize(),
) -> Finding | None:
    """Return the most probable finding of an expression in a document; None if it does not hold.

    Of equally probable ones the first in the text is returned.

    Args:
        expression: What is looked for.
        mentions: The mentions of its topics in the document.
        doubtful: Spans below the thresholds of topics under ``not``, which make it less probable.
        size: The size of the document.
    """
    findings = _find(expression, _CallMentions(mentions, doubtful, size), has_place=False)
    return findings[0] if findings else None


def _find(expression: Expression, call: _CallMentions, *, has_place: bool) -> list[Finding]:
    """Return the findings that no other one beats.

    `has_place` tells whether an expression around this one asks where they are.
    """
    call = call.restrict(expression)
    if expression.kind == "topic":
        findings = _find_topic(expression, call)
    elif expression.kind == "then":
        findings = _find_then(expression, call)
    else:
        combine = {"any": _find_any, "all": _find_all}[expression.kind]
        findings = combine(expression, call, has_place=has_place)
    return _keep_best(findings, has_place=has_place)


def _keep_best(findings: Iterable[Finding], *, has_place: bool) -> list[Finding]:
    """Return the findings that no other one beats, the most probable and first one first.

    One beats another if it is as probable, and begins and ends inside it. If no place is asked for,
    the most probable one beats all.
    """
    ordered = sorted(findings, key=lambda item: (-item.probability, item.start, item.end))
    if not has_place:
        return ordered[:1]
    unbeaten: list[Finding] = []
    # the innermost ones among them: starts and ends both grow
    starts: list[int] = []
    ends: list[int] = []
    for finding in ordered:
        place = bisect_left(starts, finding.start)
        if place < len(starts) and ends[place] <= finding.end:
            continue
        unbeaten.append(finding)
        first, last = bisect_left(ends, finding.end), bisect_right(starts, finding.start)
        starts[first:last], ends[first:last] = [finding.start], [finding.end]
    return unbeaten


def _find_topic(expression: Expression, call: _CallMentions) -> list[Finding]:
    mentions: Iterable[Mention] = (
        mention for mention in call.mentions if mention.match.topic == expression.topic
    )
    if comparison := expression.amount:
        mentions = filter(None, (_name_amount(mention, comparison) for mention in mentions))
    return [Finding((mention,), mention, mention.match.probability) for mention in mentions]


def _name_amount(mention: Mention, comparison: Comparison) -> Mention | None:
    """Return the mention with the first number that is as wanted; None if it has none."""
    texts = (amount.text for amount in mention.amounts if _compare(amount, comparison))
    text = next(texts, None)
    return None if text is None else replace(mention, amount=text)


def _compare(amount: Amount, comparison: Comparison) -> bool:
    number, limit = amount.number, comparison.number
    answers = {
        ">": number > limit,
        ">=": number >= limit,
        "<": number < limit,
        "<=": number <= limit,
        "=": number == limit,
    }
    return answers[comparison.sign] and comparison.unit in ("", amount.unit)


def _find_any(expression: Expression, call: _CallMentions, *, has_place: bool) -> list[Finding]:
    """Return findings of one part, and of several parts together.

    Parts with a common topic are not taken together: they are not independent.
    """
    findings: list[Finding] = []
    topics: set[str] = set()
    for part in expression.parts:
        part_findings, names = _find(part, call, has_place=has_place), part.list_topics()
        pairs = [(one, other) for one in findings for other in part_findings if not names & topics]
        both = [
            one.join(other, 1 - (1 - one.probability) * (1 - other.probability))
            for one, other in pairs
        ]
        findings = _keep_best([*findings, *part_findings, *both], has_place=has_place)
        topics |= names
    return findings


def _find_all(expression: Expression, call: _CallMentions, *, has_place: bool) -> list[Finding]:
    within = expression.within
    has_place = has_place or within is not None
    denied = [part for part in expression.parts if part.kind == "not"]
    spoken = [part for part in expression.parts if part.kind != "not"]
    findings = _find(spoken[0], call, has_place=has_place)
    for part in spoken[1:]:
        part_findings = _find(part, call, has_place=has_place)
        pairs = ((one, other) for one in findings for other in part_findings)
        joined = (one.join(other, one.probability * other.probability) for one, other in pairs)
        within_reach = (both for both in joined if _is_near(both.first, both.last, within))
        findings = _keep_best(within_reach, has_place=has_place)
    absences = [_Absence.find(part, call) for part in denied if findings]
    checked = (_check_all(absences, item, _surround(item, item, within)) for item in findings)
    return list(filter(None, checked))


def _find_then(expression: Expression, call: _CallMentions) -> list[Finding]:
    """Return findings of all parts in their order, part by part.

    Each chain of the parts so far is kept with its last part, behind which a ``not`` looks.
    """
    within = expression.within
    chains: list[tuple[Finding, Finding]] | None = None
    absences: list[_Absence] = []
    for part in expression.parts:
        if part.kind == "not":
            absences.append(_Absence.find(part, call))
            continue
        part_findings = _find(part, call, has_place=True)
        if chains is None:
            starts = ((item, _surround(None, item, within)) for item in part_findings)
            checked = ((item, _check_all(absences, item, place)) for item, place in starts)
            chains = [(chain, item) for item, chain in checked if chain]
        else:
            chains = [
                (chain, item)
                for item in part_findings
                for chain in _extend(chains, item, within, absences)
            ]
        absences = []
    findings = (
        _check_all(absences, chain, _surround(last, None, within)) for chain, last in chains or ()
    )
    return list(filter(None, findings))


def _extend(
    chains: Sequence[tuple[Finding, Finding]],
    item: Finding,
    within: Length | None,
    absences: Sequence[_Absence],
) -> list[Finding]:
    """Return the chains that end before `item`, joined with it; beaten ones are left out."""
    joined = []
    for chain, last in chains:
        if chain.end > item.start:
            continue
        both = chain.join(item, chain.probability * item.probability)
        if _is_near(both.first, both.last, within):
            joined.append(_check_all(absences, both, _between(last, item)))
    return _keep_best(filter(None, joined), has_place=True)


IsInPlace = Callable[[Finding], bool]
"""Tells whether a finding of a ``not`` lies where it must not be."""


@dataclass(frozen=True, slots=True)
class _Absence:
    """The findings of what must not be said: sure ones, and those with doubtful mentions."""

    sure: Sequence[Finding]
    doubtful: Sequence[Finding]

    @classmethod
    def find(cls, expression: Expression, call: _CallMentions) -> _Absence:
        """Return what is said of the part of a ``not``."""
        call, (part,) = call.restrict(expression), expression.parts
        doubtful = _find(part, call.add_doubtful(), has_place=True) if call.doubtful else ()
        return cls(_find(part, call, has_place=True), doubtful)

    def check(self, finding: Finding, is_in_place: IsInPlace) -> Finding | None:
        """Return the finding, less probable by what is doubtful; None if it does not hold."""
        if any(map(is_in_place, self.sure)):
            return None
        denied = (item.probability for item in self.doubtful if is_in_place(item))
        return replace(finding, probability=finding.probability * (1 - max(denied, default=0.0)))


def _check_all(
    absences: Sequence[_Absence], finding: Finding, is_in_place: IsInPlace
) -> Finding | None:
    checked: Finding | None = finding
    for absence in absences:
        checked = checked and absence.check(checked, is_in_place)
    return checked


def _between(before: Finding, after: Finding) -> IsInPlace:
    return lambda item: before.start <= item.start and item.end <= after.end


def _surround(before: Finding | None, after: Finding | None, within: Length | None) -> IsInPlace:
    """Return what tells whether something lies around a finding: before, after, or both.

    Given `before` alone, it must come after that one; given `after` alone, before that one; given a
    finding as both, it may lie on both sides. It must be near it if there is a distance.
    """

    def is_in_place(item: Finding) -> bool:
        if before is None and after is not None and item.end > after.end:
            return False
        if after is None and before is not None and item.start < before.start:
            return False
        if within is None:
            return True
        distance, unit = within.number, within.unit
        is_late = after is None or _begin(after.first, unit) - _begin(item.first, unit) <= distance
        is_early = before is None or _end(item.last, unit) - _end(before.last, unit) <= distance
        return is_late and is_early

    return is_in_place


def _begin(mention: Mention, unit: str) -> float:
    """Return where a mention begins, in seconds, turns or words."""
    if unit == "s":
        return (mention.start_ms or 0) / 1000
    return mention.match.turn if unit == "turns" else mention.first_word


def _end(mention: Mention, unit: str) -> float:
    """Return where a mention ends: behind its last word, but in its turn."""
    if unit == "s":
        return (mention.end_ms or 0) / 1000
    return mention.match.turn if unit == "turns" else mention.last_word + 1


def _is_near(first: Mention, last: Mention, within: Length | None) -> bool:
    return within is None or _end(last, within.unit) - _begin(first, within.unit) <= within.number


def _is_inside(mention: Mention, region: Region, size: CallSize) -> bool:
    """Tell whether a mention begins in a region; not if the times for that are unknown."""
    length, unit = region.length.number, region.length.unit
    if unit == "s":
        begin, first, last = mention.match.start_ms, size.start_ms, size.end_ms
        if begin is None or first is None or last is None:
            return False
        seconds_before, seconds_after = (begin - first) / 1000, (last - begin) / 1000
        return seconds_before < length if region.end == "first" else seconds_after <= length
    total, begin = (
        (size.turns, mention.match.turn) if unit == "turns" else (size.words, mention.first_word)
    )
    reach = total * length / 100 if unit == "%" else length
    return begin < reach if region.end == "first" else begin >= total - reach
