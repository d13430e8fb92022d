"""`Rule`: an expression over topics. This module is imported with the package, so it stays light.

The forms that a user writes are read in `rule_file`; `rule_matches` finds where a rule holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Literal

Kind = Literal["topic", "all", "any", "then", "not"]
End = Literal["first", "last"]
Sign = Literal[">", ">=", "<", "<=", "="]


@dataclass(frozen=True, slots=True)
class Length:
    """A length of a call: so many seconds (``s``), ``turns``, ``words``, or ``%`` of its words."""

    number: float
    unit: str

    def __str__(self) -> str:
        unit = self.unit.removesuffix("s") if self.number == 1 and self.unit != "s" else self.unit
        return f"{self.number:g} {unit}"


@dataclass(frozen=True, slots=True)
class Region:
    """The first or the last part of a call, of this length."""

    end: End
    length: Length

    def __str__(self) -> str:
        return f"{self.end} {self.length}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What an amount must be: ``> 100``, ``<= £20``; any unit counts if `unit` is empty."""

    sign: Sign
    number: float
    unit: str = ""

    def __str__(self) -> str:
        after = " %" if self.unit == "%" else ""
        return f"{self.sign} {'' if after else self.unit}{self.number:,.10g}{after}"


@dataclass(frozen=True, slots=True)
class Expression:
    """A topic, or a combination of expressions, with conditions on its mentions.

    Attributes:
        kind: ``topic`` for the mentions of a topic; ``all`` or ``any`` of the parts; ``then`` for
            all parts in their order; ``not`` for the absence of the only part.
        topic: The topic's name, if the kind is ``topic``.
        parts: What is combined; empty for a topic.
        within: The largest distance from where the first part begins to where the last one ends.
        speakers: Only mentions by these speakers count; empty for all.
        region: Only mentions that begin there count; None for the whole call.
        amount: A number that a mention, or else its turn, must have; None if none is needed.
    """

    kind: Kind
    topic: str = ""
    parts: tuple[Expression, ...] = ()
    within: Length | None = None
    speakers: tuple[str, ...] = ()
    region: Region | None = None
    amount: Comparison | None = None

    def walk(self) -> Iterator[Expression]:
        """Yield this expression, and all that it is made of."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def list_topics(self) -> set[str]:
        """Return the names of all topics in it."""
        return {item.topic for item in self.walk() if item.kind == "topic"}

    def list_denied(self) -> set[str]:
        """Return the names of the topics under a ``not``."""
        return {name for item in self.walk() if item.kind == "not" for name in item.list_topics()}

    def may_hold(self, topics: Set[str]) -> bool:
        """Tell whether it can hold in a document with mentions of only these topics."""
        if self.kind in ("topic", "not"):
            return self.kind == "not" or self.topic in topics
        answers = (part.may_hold(topics) for part in self.parts)
        return any(answers) if self.kind == "any" else all(answers)

    def __str__(self) -> str:
        return f"{self._join_parts()}{self._describe_conditions()}"

    def _join_parts(self) -> str:
        if self.kind == "topic":
            return self.topic
        if len(self.parts) == 1 and not (self.kind == "not" or self._describe_conditions()):
            return str(self.parts[0])  # the name of another rule
        words = [part._wrap() for part in self.parts]
        if self.kind == "not":
            return f"no {words[0]}"
        joined = {"all": " and ", "any": " or ", "then": ", then "}[self.kind].join(words)
        needs_brackets = len(words) > 1 and (self.speakers or self.region)
        return f"({joined})" if needs_brackets else joined

    def _wrap(self) -> str:
        """Return the words for it as a part of another one."""
        text = str(self)
        is_plain = self.kind in ("topic", "not") or text.startswith("(") or " " not in text
        return text if is_plain else f"({text})"

    def _describe_conditions(self) -> str:
        within = f", all within {self.within}" if self.within else ""
        speakers = f" by {' or '.join(self.speakers)}" if self.speakers else ""
        region = f" in the {self.region}" if self.region else ""
        amount = f" with a number {self.amount}" if self.amount else ""
        return f"{speakers}{region}{amount}{within}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A name with an expression over topics, which holds in a document or not.

    Attributes:
        name: Names the rule in matches; no topic and no other rule of the file has it.
        rule: The expression. Other rules in it are replaced by their own expressions.
        threshold: The least probability of a match, 0..1; None for any.
        notes: For people.
    """

    name: str
    rule: Expression
    threshold: float | None = None
    notes: str = ""

    def __str__(self) -> str:
        return f"{self.name}: a call that has {self.rule}"
