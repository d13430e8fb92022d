"""Turn the mentions of each document into matches of the rules that hold in it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby

from hybrid_search.errors import DocumentMissingError
from hybrid_search.search.hit import DocumentView
from hybrid_search.text.words import words
from hybrid_search.topics.amounts import Amount, find_amounts
from hybrid_search.topics.match import Evidence, Match
from hybrid_search.topics.rule import Expression, Rule
from hybrid_search.topics.rule_matches import CallSize, Finding, Mention, find_best
from hybrid_search.topics.types import MinedBlock

ReadDocument = Callable[[str], DocumentView]
"""Returns a document by its id, or raises DocumentMissingError."""


@dataclass(slots=True, eq=False)
class RuleBuilder:
    """Adds the matches of rules to mined blocks.

    Attributes:
        rules: The rules.
        read_document: Reads a document, if a rule asks for its words, numbers or size.
        untimed: In how many documents each rule that asks for seconds found no times, by its name.
    """

    rules: Sequence[Rule]
    read_document: ReadDocument
    untimed: Counter[str] = field(default_factory=Counter)

    def add(self, block: MinedBlock) -> MinedBlock:
        """Return the block with the matches of rules, each where its first evidence stands."""
        doubtful: dict[str, list[Match]] = {}
        for match in block.doubtful:
            doubtful.setdefault(match.id, []).append(match)
        matches: list[Match] = []
        for name, group in groupby(block.matches, key=lambda match: match.id):
            mentions = list(group)
            found = self._find(name, mentions, doubtful.get(name, []))
            matches += sorted([*mentions, *found], key=lambda match: (match.start, match.end))
        return replace(block, matches=matches, doubtful=())

    def _find(
        self, name: str, matches: Sequence[Match], doubtful: Sequence[Match]
    ) -> Iterator[Match]:
        """Yield the matches of all rules that hold in a document."""
        topics = {match.topic for match in matches}
        rules = [rule for rule in self.rules if rule.rule.may_hold(topics)]
        if not rules:
            return
        try:
            view = self.read_document(name) if any(map(_asks_document, rules)) else None
        except DocumentMissingError:  # deleted since
            return
        placed = place_mentions([*matches, *doubtful], view)
        mentions, doubted = placed[: len(matches)], placed[len(matches) :]
        size = measure_call(view) if view else CallSize()
        for rule in rules:
            if _asks_seconds(rule.rule) and all(match.start_ms is None for match in matches):
                self.untimed[rule.name] += 1
            finding = find_best(rule.rule, mentions, doubted, size)
            if finding and finding.probability >= (rule.threshold or 0.0):
                yield build_match(rule, finding)


def build_match(rule: Rule, finding: Finding) -> Match:
    """Return the match of a rule with its evidence."""
    return replace(
        finding.first.match,
        topic=rule.name,
        probability=finding.probability,
        evidence=tuple(map(_build_evidence, finding.mentions)),
    )


def _build_evidence(mention: Mention) -> Evidence:
    names = (name for name in Evidence.__slots__ if name != "amount")
    values = {name: getattr(mention.match, name) for name in names}
    return Evidence(**values, amount=mention.amount)


def _asks_document(rule: Rule) -> bool:
    return any(
        item.region or item.amount or (item.within and item.within.unit == "words")
        for item in rule.rule.walk()
    )


def _asks_seconds(expression: Expression) -> bool:
    items = list(expression.walk())
    distances = [item.within for item in items if item.within]
    regions = [item.region.length for item in items if item.region]
    return any(length.unit == "s" for length in distances + regions)


def measure_call(view: DocumentView) -> CallSize:
    """Return the size of a document."""
    if not view.turns:
        return CallSize(len(words(view.text)))
    first, last = view.turns[0], view.turns[-1]
    return CallSize(len(words(view.text)), last.turn + 1, first.start_ms, last.end_ms)


def place_mentions(matches: Sequence[Match], view: DocumentView | None) -> list[Mention]:
    """Return matches with their places, in the same order; without a view only with their times.

    Time does not run back: where turns overlap, a mention begins and ends no earlier than those
    that begin and end before it in the text.
    """
    starts = _run_forward((match.start, match.start_ms) for match in matches)
    ends = _run_forward((match.end, match.end_ms) for match in matches)
    mentions = [
        Mention(match, start_ms=starts.get(match.start), end_ms=ends.get(match.end))
        for match in matches
    ]
    if view is None:
        return mentions
    word_starts: list[int] = words(view.text)[:, 0].tolist()
    texts = {turn.turn: (turn.start, view.text[turn.start : turn.end]) for turn in view.turns}
    placed = []
    for mention in mentions:
        match = mention.match
        first_word = bisect_right(word_starts, match.start) - 1
        last_word = bisect_right(word_starts, match.end - 1) - 1
        amounts = _list_amounts(match, *texts.get(match.turn, (0, "")))
        placed.append(replace(mention, first_word=first_word, last_word=last_word, amounts=amounts))
    return placed


def _run_forward(places: Iterable[tuple[int, int | None]]) -> dict[int, int]:
    """Return the known times by place, each at least as late as those before it."""
    known = sorted((place, time) for place, time in places if time is not None)
    latest = accumulate((time for _, time in known), max)
    return dict(zip((place for place, _ in known), latest, strict=True))


def _list_amounts(match: Match, turn_start: int, turn: str) -> tuple[Amount, ...]:
    """Return the numbers in the words of a match, and then the others of its turn."""
    start, end = match.start - turn_start, match.end - turn_start
    amounts = sorted(find_amounts(turn), key=lambda amount: not start <= amount.start < end)
    return tuple(amounts)
