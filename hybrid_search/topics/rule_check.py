"""Explain rules in words, and find which part of each decides in how many documents it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from hybrid_search.topics.rule import Rule
from hybrid_search.topics.topics import Topics
from hybrid_search.topics.types import MinedBlock

OpenBlocks = Callable[[Topics], Iterator[MinedBlock]]
"""Mines topics and rules in an index."""


@dataclass(frozen=True, slots=True)
class RuleExplanation:
    """What a rule says in words, and how often it holds in an index.

    Attributes:
        rule: The rule's name.
        sentence: What it says, in one sentence.
        documents: In how many documents it holds; None without an index.
        without: In how many it would hold without one of its parts, by the part in words.
        decides: The part without which that number changes most; None if no part changes it.
    """

    rule: str
    sentence: str
    documents: int | None
    without: Mapping[str, int]
    decides: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a JSON object."""
        return asdict(self)


def explain_rules(topics: Topics, open_blocks: OpenBlocks | None) -> list[RuleExplanation]:
    """Return what each rule says, and what decides it in the index that `open_blocks` mines."""
    if open_blocks is None:
        return [RuleExplanation(rule.name, str(rule), None, {}, None) for rule in topics.rules]
    variants = {rule.name: list(_list_variants(rule)) for rule in topics.rules}
    shorter = [variant for rows in variants.values() for _, variant in rows]
    counts = Counter[str]()
    for block in open_blocks(replace(topics, rules=(*topics.rules, *shorter))):
        counts.update(match.topic for match in block.matches if match.evidence)
    return [_explain(rule, variants[rule.name], counts) for rule in topics.rules]


def _explain(
    rule: Rule, variants: Sequence[tuple[str, Rule]], counts: Mapping[str, int]
) -> RuleExplanation:
    documents = counts.get(rule.name, 0)
    without = {part: counts.get(variant.name, 0) for part, variant in variants}
    changes = {part: abs(count - documents) for part, count in without.items()}
    decides = max(changes, key=lambda part: changes[part], default=None)
    has_effect = decides is not None and changes[decides] > 0
    return RuleExplanation(
        rule.name, str(rule), documents, without, decides if has_effect else None
    )


def _list_variants(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """Yield each part of a rule in words, and the rule without it; its name is no user's."""
    expression = rule.rule
    while expression.kind == "all" and len(expression.parts) == 1:  # the name of another rule
        (expression,) = expression.parts
    for number, part in enumerate(expression.parts):
        others = expression.parts[:number] + expression.parts[number + 1 :]
        if any(other.kind != "not" for other in others):
            shorter = replace(expression, parts=others)
            yield str(part), replace(rule, name=f"{rule.name}\n{number}", rule=shorter)
