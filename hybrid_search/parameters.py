"""`Parameter`: what is said of a parameter, once for Python, the command line, HTTP and agents.

A table of parameters is a TypedDict: each field has its type and, in ``Annotated``, a `Parameter`.
Functions take ``**options: Unpack[TABLE]``; `expand_options` puts each name into their signature
and docstring. The command line makes options of a table, and the service a JSON Schema.

The package imports this module at once, so it must not import anything heavy.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from textwrap import fill
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from hybrid_search.errors import UsageError, show_value
from hybrid_search.text.near_names import hint_name

MAX_PHRASE = 5_000
"""Maximum characters of a phrase, about 1,000 words. Servers refuse queries with more than 1,024.
"""

MAX_PHRASES = 100
"""Maximum number of phrases in one query; each is a separate search."""

MAX_CONTEXT = 10_000
"""Maximum characters of a context, which the encoder reads in full."""

MAX_SPEAKER = 1_000
"""Maximum characters of a speaker's name."""

DOC_COLUMNS = 88
"""Width of the generated part of a docstring."""

JSON = "JSON"
"""The `Parameter.value` of an object that the command line takes as JSON."""

LARGEST = sys.float_info.max

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its default, its meaning, and what it may be.

    Attributes:
        words: What it means, for everybody.
        more: Further sentences, which the command line leaves out.
        default: The value if it is left out.
        limits: The smallest and the largest number.
        choices: All values, if they are few.
        longest: The most characters of a text.
        check: A further check, of each value if there may be several.
        example: A value as somebody would give it.
        see: The section of docs/query.md about it.
        narrows: Whether it leaves out hits, and so may be why there are none.
        panel: The panel of the command line's help; empty for the first.
        value: What the help calls its value; by default that says its type.
        option: Its option, if that is not named like it.
        is_local: Whether the service and the tools for agents have no such parameter.
        name: Its name in its table.
        annotation: Its type in its table.
    """

    words: str
    more: str = ""
    default: Any = None
    limits: tuple[float, float] | None = None
    choices: tuple[str | None, ...] = ()
    longest: int | None = None
    check: Callable[[str, Any], None] | None = None
    example: Any = None
    see: str = ""
    narrows: bool = False
    panel: str = ""
    value: str | None = None
    option: str | None = None
    is_local: bool = False
    name: str = ""
    annotation: Any = None

    @property
    def public_name(self) -> str:
        """The name in JSON and messages: ``not`` is a keyword of Python alone."""
        return self.name.rstrip("_")

    @property
    def option_name(self) -> str:
        """The name of its option on the command line."""
        return self.option or f"--{self.public_name.replace('_', '-')}"

    @property
    def further_words(self) -> str:
        """What the command line leaves out."""
        return f"There may be several. {self.more}" if self.has_several else self.more

    @property
    def variants(self) -> tuple[Any, ...]:
        """The types that a value may have, None left out."""
        is_union = isinstance(self.annotation, UnionType)
        parts = get_args(self.annotation) if is_union else (self.annotation,)
        return tuple(part for part in parts if part is not NoneType)

    @property
    def has_several(self) -> bool:
        """True if there may be several values."""
        return any(get_origin(variant) is Sequence for variant in self.variants)

    @property
    def kind(self) -> Any:
        """The type of a value, or of each if there may be several."""
        variant = get_origin(self.variants[0]) or self.variants[0]
        return str if self.has_several else variant

    @property
    def is_conditions(self) -> bool:
        """True if the command line takes conditions such as ``KEY=VALUE`` for it."""
        return self.kind is Mapping and self.value != JSON

    @property
    def is_optional(self) -> bool:
        """True if the value may be None."""
        return NoneType in get_args(self.annotation)

    def describe(self) -> str:
        """Return its meaning, limits, an example and the default, for documentation."""
        facts = [self.describe_limits().removeprefix("of ")] if self.limits else []
        if self.longest:
            facts.append(f"up to {self.longest:,} characters")
        if self.example is not None:
            facts.append(f"as in {self.example!r}")
        if self.default is not None and self.default is not False and self.default != ():
            facts.append(f"default: {self.default!r}")
        words = f"{self.words.removesuffix('.')} ({'; '.join(facts)})." if facts else self.words
        return f"{words} {self.further_words}".strip()

    def describe_limits(self) -> str:
        """Return the limits in words."""
        low, high = self.limits or (-math.inf, math.inf)
        return f"of at least {low:,g}" if high == math.inf else f"from {low:,g} to {high:,g}"

    def convert(self, value: Any) -> Any:
        """Return a value as it is kept: several as a tuple, numbers as those of Python.

        Raises UsageError if it is not allowed, with the value and what is allowed.
        """
        if self.choices:
            check_choice(self.public_name, value, self.choices)
            return value
        if self.has_several:
            return self._convert_several(value)
        if value is None and self.is_optional:
            return None
        return self._convert_one(value)

    def _convert_several(self, value: Any) -> tuple[Any, ...]:
        values = () if value is None else as_tuple(value)
        if not isinstance(values, tuple):
            self._convert_one(values)
        if len(values) > MAX_PHRASES:
            raise UsageError(
                f"{self.public_name} is a list of {len(values)}: give at most {MAX_PHRASES}"
            )
        return tuple(self._convert_one(item) for item in values)

    def _convert_one(self, value: Any) -> Any:
        name, kind = self.public_name, self.kind
        low, high = self.limits or (-LARGEST, LARGEST)
        if kind is bool:
            check_choice(name, value, (False, True))
        elif kind is int:
            check_integer(name, value, low, high)
        elif kind is float:
            allowed = f"a number {self.describe_limits()}" if self.limits else "a finite number"
            check_number(name, value, allowed, low, high)
        elif kind is str and Path not in self.variants:
            check_text(name, value, self.longest)
        if self.check:
            self.check(name, value)
        return kind(value) if kind in (int, float) else value


@cache
def read_table(table: Any) -> Mapping[str, Parameter]:
    """Return the parameters of a table by name, each with its name and type."""
    hints = get_type_hints(table, include_extras=True)
    return {
        name: replace(hint.__metadata__[0], name=name, annotation=hint.__origin__)
        for name, hint in hints.items()
    }


def complete(table: Any, options: Mapping[str, Any], function: str) -> dict[str, Any]:
    """Return the value of each parameter of a table: the option, else the default.

    UsageError is raised for a value that is not allowed.

    Raises:
        TypeError: If an option is not in the table; `function` is named.
    """
    parameters = read_table(table)
    for name in options.keys() - parameters.keys():
        hint = hint_name(name, list(parameters))
        raise TypeError(
            f"{function}() got an unexpected keyword argument {show_value(name)}: {hint}"
        )
    return {
        name: parameter.convert(options.get(name, parameter.default))
        for name, parameter in parameters.items()
    }


def expand_options(table: Any) -> Callable[[Function], Function]:
    """Return a decorator that puts a table into a function's signature and docstring.

    The function takes ``**options: Unpack[TABLE]``. `help` shows each parameter with its default,
    before other keyword parameters, and its meaning where the docstring has ``**options``.
    """

    def expand(function: Function) -> Function:
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())[:-1]
        extra = [item for item in parameters if item.kind is inspect.Parameter.KEYWORD_ONLY]
        positional = [item for item in parameters if item not in extra]
        expanded = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=item.default,
                annotation=item.annotation,
            )
            for name, item in read_table(table).items()
        ]
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*positional, *expanded, *extra]
        )
        function.__doc__ = _document(function.__doc__ or "", table)
        return function

    return expand


def _document(docstring: str, table: Any) -> str:
    """Return a docstring with the parameters of a table in place of ``**options``."""
    lines = []
    for line in docstring.splitlines():
        if not line.lstrip().startswith("**options:"):
            lines.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        for name, item in read_table(table).items():
            text = f"{name}: {item.describe()}"
            lines.append(
                fill(text, DOC_COLUMNS, initial_indent=indent, subsequent_indent=f"{indent}    ")
            )
    return "\n".join(lines)


def as_tuple(values: Any) -> Any:
    """Return one or several strings as a tuple; anything else unchanged, to be refused later."""
    if isinstance(values, str):
        return (values,)
    is_list = isinstance(values, Collection) and not isinstance(values, bytes | Mapping)
    return tuple(values) if is_list else values


def check_text(name: str, value: Any, longest: int | None = None) -> None:
    """Raise UsageError unless `value` is text of at most `longest` characters."""
    if not isinstance(value, str):
        raise _refuse(name, value, "a string")
    if longest is not None and len(value) > longest:
        raise UsageError(
            f"{name} has {len(value):,} characters: it may have at most {longest:,}. Shorten it"
        )


def check_phrase(name: str, value: Any) -> None:
    """Raise UsageError unless `value` is a non-blank phrase."""
    check_text(name, value, MAX_PHRASE)
    if not value.strip():
        raise UsageError(f"the {name} is blank ({show_value(value)}): say what to look for")


def check_speaker(name: str, value: Any) -> None:
    """Raise UsageError unless `value` is a possible speaker name."""
    check_text(name, value, MAX_SPEAKER)
    if not value.strip():
        raise UsageError(f"the {name} is blank ({show_value(value)}): name one, or leave it out")


def check_context(name: str, value: Any) -> None:
    """Raise UsageError unless `value` is None or a text of at most `MAX_CONTEXT` characters."""
    if value is not None:
        check_text(name, value, MAX_CONTEXT)


def check_integer(name: str, value: Any, low: float, high: float = math.inf) -> None:
    """Raise UsageError unless `value` is an integer from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
        limits = f"from {low:,} to {high:,}" if high < math.inf else f"of at least {low:,}"
        raise _refuse(name, value, f"an integer {limits}")


def check_number(name: str, value: Any, allowed: str, low: float, high: float) -> None:
    """Raise UsageError unless `value` is from `low` to `high`; `allowed` words the limits."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not low <= _as_float(value) <= high:
        raise _refuse(name, value, allowed)


def _as_float(value: Any) -> float:
    """Convert to float: numpy would cast the limits to its own type, and overflow."""
    try:
        return float(value)
    except OverflowError:  # an integer too large for a float
        return math.inf if value > 0 else -math.inf


def check_choice(name: str, value: Any, choices: Sequence[str | bool | None]) -> None:
    """Raise UsageError unless `value` is one of `choices`, and of the same type."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise _refuse(name, value, " or ".join(map(repr, choices)))


def _refuse(name: str, value: Any, allowed: str) -> UsageError:
    return UsageError(f"{name} is {show_value(value)}: it must be {allowed}")
