"""Read the rules of a file of topics. A mistake is one line with the value and the remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from hybrid_search.errors import UsageError, show_value
from hybrid_search.text.near_names import hint_name
from hybrid_search.topics.amounts import find_amounts
from hybrid_search.topics.rule import Comparison, End, Expression, Kind, Length, Region, Sign

MAX_PARTS = 100
"""Topics in one rule, those of the rules that it names included."""

MAX_DEPTH = 20
"""How deep expressions may be nested."""

KINDS = ("topic", "all", "any", "then", "not")
KEYS = (*KINDS, "within", "by", "in", "amount")

_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(s|turns?|words?|%)")
_UNITS = {"turn": "turns", "word": "words"}
_COMPARISON = re.compile(r"(>=|<=|>|<|=)\s*(\S.*)")


@dataclass(frozen=True, slots=True)
class RuleReader:
    """Reads the rules of a file.

    Attributes:
        topics: The names of all topics with phrases.
        rules: What the file has under ``rule``, by the names of the rules.
    """

    topics: Sequence[str]
    rules: Mapping[str, object]

    def read(self, name: str) -> Expression:
        """Return the expression of a rule; UsageError is raised if there is a mistake."""
        expression = self._read(self.rules[name], (name,), 0)
        if expression.kind == "not":
            raise UsageError(
                f"rule is {show_value(self.rules[name])}: not alone has no evidence; put it into "
                "all or then, beside a topic that is said"
            )
        return expression

    def _read(self, value: object, path: tuple[str, ...], depth: int) -> Expression:
        """Return an expression; `path` are the rules that led to it."""
        if depth > MAX_DEPTH:
            raise UsageError(f"rule is nested more than {MAX_DEPTH} times: make it flatter")
        if isinstance(value, str):
            return self._read_name(value, path, depth)
        if not isinstance(value, dict):
            raise UsageError(
                f"rule has {show_value(value)}: it must be the name of a topic, or a mapping with "
                "all, any, then or not"
            )
        kind = _find_kind(value)
        content = value[kind]
        if kind == "topic":
            expression = self._read_topic(content, path, depth)
        elif kind == "not":
            expression = Expression("not", parts=(self._read_denied(content, path, depth),))
        else:
            expression = Expression(kind, parts=self._read_parts(kind, content, path, depth))
        return _add_conditions(expression, value)

    def _read_topic(self, value: object, path: tuple[str, ...], depth: int) -> Expression:
        if not isinstance(value, str):
            raise UsageError(f"topic is {show_value(value)}: it must be the name of a topic")
        return self._read_name(value, path, depth)

    def _read_name(self, name: str, path: tuple[str, ...], depth: int) -> Expression:
        if name in self.topics:
            return Expression("topic", name)
        if name in path:
            cycle = " which needs ".join(map(show_value, [*path[path.index(name) :], name]))
            raise UsageError(f"rule needs itself: {cycle}; leave one of them out")
        if name not in self.rules:
            hint = hint_name(
                name, [*self.topics, *(rule for rule in self.rules if rule != path[0])]
            )
            raise UsageError(
                f"rule names {show_value(name)}, which is no topic of the file: {hint}"
            )
        # in a node of its own, so that conditions beside the name leave its own as they are
        inner = self._read(self.rules[name], (*path, name), depth + 1)
        return inner if inner.kind == "not" else Expression("all", parts=(inner,))

    def _read_denied(self, value: object, path: tuple[str, ...], depth: int) -> Expression:
        if isinstance(value, list):
            raise UsageError(
                f"not is {show_value(value)}: it takes one part; write not: {{any: [...]}}"
            )
        part = self._read(value, path, depth + 1)
        if any(item.kind == "not" for item in part.walk()):
            raise UsageError(f"not is {show_value(value)}, which has a not itself: leave both out")
        return part

    def _read_parts(
        self, kind: Kind, values: object, path: tuple[str, ...], depth: int
    ) -> tuple[Expression, ...]:
        if not isinstance(values, list) or not values:
            raise UsageError(
                f"{kind} is {show_value(values)}: it must be a list of at least two parts"
            )
        if len(values) == 1:
            raise UsageError(f"{kind} has one part, {show_value(values[0])}: give at least two")
        if len(values) > MAX_PARTS:
            raise UsageError(f"{kind} has {len(values)} parts: it may have at most {MAX_PARTS}")
        parts = tuple(self._read(value, path, depth + 1) for value in values)
        _check_parts(kind, parts, values)
        return parts


def _check_parts(kind: Kind, parts: Sequence[Expression], values: Sequence[object]) -> None:
    """Raise UsageError if the parts of a combination do not go together."""
    spoken = [part for part in parts if part.kind != "not"]
    if kind == "any" and len(spoken) < len(parts):
        raise UsageError(f"any has {show_value(values)}: not belongs into all or then")
    if not spoken:
        raise UsageError(
            f"{kind} has {show_value(values)}: not alone has no evidence; add a topic that is said"
        )
    if kind != "then":
        doubles = [
            value for part, value in zip(parts, values, strict=True) if parts.count(part) > 1
        ]
        if doubles:
            raise UsageError(f"{kind} has {show_value(doubles[0])} twice: keep one of them")
    count = sum(item.kind == "topic" for part in parts for item in part.walk())
    if count > MAX_PARTS:
        raise UsageError(f"rule has {count} topics: it may have at most {MAX_PARTS}")


def _find_kind(value: Mapping[Any, Any]) -> Kind:
    """Return which of `KINDS` a mapping is, whose keys are checked."""
    for key in value:
        if key not in KEYS:
            hint = (
                hint_name(key, KEYS) if isinstance(key, str) else f"the keys are {', '.join(KEYS)}"
            )
            raise UsageError(f"rule has the unknown key {show_value(key)}: {hint}")
    kinds = [key for key in value if key in KINDS]
    if len(kinds) != 1:
        has = " and ".join(kinds) or "none of them"
        raise UsageError(
            f"rule has {show_value(value)} with {has}: each mapping needs one of {', '.join(KINDS)}"
        )
    return cast("Kind", kinds[0])


def _add_conditions(expression: Expression, value: Mapping[str, Any]) -> Expression:
    """Return the expression with what a mapping says beside its kind."""
    if "within" in value and not {"all", "then"} & value.keys():
        raise UsageError(
            f"within is {show_value(value['within'])}, but there is one part: it belongs beside "
            "all or then"
        )
    if "amount" in value and expression.kind != "topic":
        raise UsageError(
            f"amount is {show_value(value['amount'])}, but no topic is beside it: write "
            f"{{topic: NAME, amount: {value['amount']!r}}}"
        )
    read_by_key: dict[str, Callable[[object], Any]] = {
        "within": _read_within,
        "by": _read_speakers,
        "in": _read_region,
        "amount": _read_amount,
    }
    names = {"by": "speakers", "in": "region"}
    read = {
        names.get(key, key): read_by_key[key](value[key]) for key in read_by_key if key in value
    }
    return replace(expression, **read)


def _read_length(text: str) -> Length | None:
    """Return a length that is more than nothing; turns and words are whole numbers."""
    match = _LENGTH.fullmatch(text)
    if not match or not float(match[1]):
        return None
    unit = _UNITS.get(match[2], match[2])
    is_whole = match[1].isdigit() or unit in ("s", "%")
    return Length(float(match[1]), unit) if is_whole else None


def _read_within(value: object) -> Length:
    length = _read_length(value) if isinstance(value, str) else None
    if length is None or length.unit == "%":
        raise UsageError(
            f"within is {show_value(value)}: it must be a number of s, turns or words, such as "
            "120 s, 3 turns or 40 words"
        )
    return length


def _read_speakers(value: object) -> tuple[str, ...]:
    speakers = value if isinstance(value, list) else [value]
    if not speakers or not all(isinstance(item, str) and item.strip() for item in speakers):
        raise UsageError(f"by is {show_value(value)}: it must be a speaker, or a list of some")
    return tuple(dict.fromkeys(speakers))


def _read_region(value: object) -> Region:
    end, _, rest = value.strip().partition(" ") if isinstance(value, str) else ("", "", "")
    length = _read_length(rest.strip())
    is_share = length is None or length.unit != "%" or length.number < 100
    if end not in ("first", "last") or length is None or not is_share:
        raise UsageError(
            f"in is {show_value(value)}: it must be first or last with a number of s, turns, words "
            "or %, such as first 60 s or last 20 %"
        )
    return Region(cast("End", end), length)


def _read_amount(value: object) -> Comparison:
    match = _COMPARISON.fullmatch(value.strip()) if isinstance(value, str) else None
    amounts = list(find_amounts(match[2])) if match else []
    if not match or len(amounts) != 1 or amounts[0].text != match[2]:
        raise UsageError(
            f"amount is {show_value(value)}: it must be a comparison with one number, such as "
            "'> 100', '<= £20' or '>= 5 %'"
        )
    sign = cast("Sign", match[1])
    return Comparison(sign, amounts[0].number, amounts[0].unit)
