"""Values for the parameters of a query: right ones, and of wrong type, size or shape."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from hybrid_search.parameters import Parameter
from hybrid_search.search.query import PARAMETERS

NASTY: Sequence[Any] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    5.5,
    -0.0,
    0.5,
    10**30,
    -(10**30),
    2**63,
    math.nan,
    math.inf,
    -math.inf,
    1e308,
    5e-324,
    1j,
    "",
    " ",
    "0.5",
    "true",
    "calls",
    "id",
    "sector",
    "\x00",
    "\ud800",
    "\u202e\u0301\ufeff",
    "\x1b[31mred\x1b[0m",
    "'; DROP TABLE documents; --",
    '" OR "a" NEAR("b")',
    "*",
    "../../etc/passwd",
    "🦊" * 200,
    "x" * 5_000,
    b"bytes",
    bytearray(b"x"),
    (),
    [],
    {},
    set(),
    frozenset(("a",)),
    ["a", 1, None],
    ["a"] * 500,
    [["a"]],
    {"a": {"b": 1}},
    {1: 2},
    {None: None},
    range(3),
    Decimal("0.5"),
    Fraction(1, 2),
    date(2026, 1, 1),
    np.float32(0.5),
    np.float64("nan"),
    np.int64(5),
    np.bool_(True),
    np.array([0.5]),
    np.array([1, 2]),
    np.array([]),
    object(),
    object,
    len,
    Exception("x"),
    NotImplemented,
    ...,
)


def list_allowed(parameter: Parameter) -> list[Any]:
    """Return values of a parameter that its table allows: choices, else default, ends, example."""
    if parameter.choices or parameter.kind is bool:
        return [*(parameter.choices or (False, True))]
    ends = [end for end in parameter.limits or () if math.isfinite(end)]
    example = [] if parameter.example is None else [parameter.example]
    return [parameter.default, *ends, *example]


GOOD: dict[str, Sequence[Any]] = {
    **{name: list_allowed(parameter) for name, parameter in PARAMETERS.items()},
    "phrase": (
        "refund request",
        "the",
        "San José",
        "card card card",
        ["refund", "money back"],
        "a b c d e f g h i j k l m n o p q r s t u v w x y z",
        "…",
        "🦊",
        "word " * 300,
    ),
    "index": ("calls",),
    "alpha": (0, 0.0, 0.25, 0.5, 1, 1.0),
    "size": (1, 5, 10, 10_000),
    "offset": (0, 1, 9_999),
    "spans": (0, 1, 3, 100),
    "where": (
        None,
        {},
        {"sector": "bank"},
        {"sector": ["bank", "shop"]},
        {"id": "bank-001"},
        {"sector": {"gte": "b", "lt": "c"}},
    ),
    "context": (None, "I want a refund request for the San José card"),
    "min_score": (None, 0, 0.5, -1, 2),
    "group_by": ("document", "passage", "sector"),
    "feedback": (0, 1, 10, 100),
    "sort": (None, "sector", "-sector"),
    "facets": ((), "sector", ["sector"], ("sector",)),
    "speaker": ((), "customer", ["customer", "agent"]),
    "not_": ((), "have not received a refund"),
}
"""For each parameter of a query, and for its phrase, values that are right or may be.

Written out where others tell more than those of the table.
"""

BAD_WHERE: Sequence[Any] = (
    {"sector": None},
    {"sector": []},
    {"sector": {}},
    {"sector": {"gte": None}},
    {"sector": {"gte": [1]}},
    {"sector": {"above": 1}},
    {"sector": 5},
    {"sector": [1, "a"]},
    {"sector": [["bank"]]},
    {"sector": {"gte": "a", "lte": 5}},
    {"sector": math.nan},
    {"no such field": "x"},
    {"": ""},
    {5: 5},
    {"id": 5},
    {"id": ["a"] * 2_000},
    {"sector": "x" * 100_000},
    {"sector": b"bank"},
    {"sector": object()},
    {"sector.sector": "bank"},
    {"\x00": "\x00"},
    {"sector": "\ud800"},
    {"sector": {"gte": math.inf}},
    {"sector": 2**70},
)


def draw_options(chance: random.Random) -> tuple[Any, dict[str, Any]]:
    """Return a phrase and options, of which usually one or two are wrong."""
    names = [name for name in GOOD if name != "phrase"]
    options = {
        name: chance.choice(GOOD[name]) for name in chance.sample(names, chance.randrange(6))
    }
    phrase = chance.choice(GOOD["phrase"])
    for _ in range(chance.choice((0, 1, 1, 1, 2))):
        name = chance.choice([*names, "where", "phrase"])
        value = chance.choice(BAD_WHERE if name == "where" and chance.random() < 0.7 else NASTY)
        if name == "phrase":
            phrase = value
        else:
            options[name] = value
    return phrase, options
