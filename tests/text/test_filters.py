"""`where` checked against the fields of an index, leaves of metadata, and the day of a call."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import pytest

from hybrid_search.errors import InputError, UsageError
from hybrid_search.text.filters import (
    Condition,
    Range,
    check_where,
    compile_where,
    find_call_date,
    leaves,
    matches_where,
    new_fields,
)

FIELDS = {
    "sector": "string",
    "minutes": "number",
    "solved": "boolean",
    "customer": "object",
    "customer.tier": "string",
}


def compile_condition(where: dict[str, Any]) -> Condition:
    (condition,) = compile_where(where, FIELDS)
    return condition


@pytest.mark.parametrize(
    ("field", "word", "value"),
    [
        ("minutes", "3", 3),
        ("minutes", "-2.5", -2.5),
        ("minutes", "1e3", 1000.0),
        ("solved", "true", True),
        ("solved", "False", False),
        ("sector", "3", "3"),
        ("sector", "true", "true"),
        ("id", "17", "17"),
    ],
)
def test_a_word_from_the_command_line_is_read_as_the_fields_type(
    field: str, word: str, value: object
) -> None:
    (compiled_value,) = compile_condition({field: word}).values
    assert compiled_value == value
    assert type(compiled_value) is type(value)


@pytest.mark.parametrize("large", [2**53 + 1, -(2**63), 2**63 - 1])
def test_a_large_integer_keeps_its_last_digit(large: int) -> None:
    assert (
        compile_condition({"minutes": large}).values
        == compile_condition({"minutes": str(large)}).values
        == (large,)
    )


def test_an_integer_that_no_store_holds_is_compared_as_a_float() -> None:
    assert compile_condition({"minutes": {"lt": 2**70}}).ranges == (Range((("lt", float(2**70)),)),)


@pytest.mark.parametrize("bad_value", [10**400, "many", "", True, None, [[1]], object()])
def test_what_is_no_number_is_refused_for_a_number(bad_value: object) -> None:
    with pytest.raises(UsageError, match=r"cannot filter 'minutes' by .*: the field is a number"):
        compile_condition({"minutes": bad_value})


@pytest.mark.parametrize(
    ("field", "bad_value"),
    [
        ("sector", 3),
        ("sector", None),
        ("sector", True),
        ("solved", "yes"),
        ("solved", 1),
        ("id", 17),
    ],
)
def test_a_value_of_another_type_is_refused_with_both(field: str, bad_value: object) -> None:
    kind = {**FIELDS, "id": "string"}[field]
    message = f"cannot filter '{field}' by {bad_value!r}: the field is a {kind}"
    with pytest.raises(UsageError, match=message):
        compile_condition({field: bad_value})


def test_one_bad_value_of_a_list_or_a_range_is_named() -> None:
    with pytest.raises(UsageError, match="'minutes' by 'soon'"):
        compile_condition({"minutes": [1, "soon"]})
    with pytest.raises(UsageError, match="'minutes' by 'late'"):
        compile_condition({"minutes": {"gt": 1, "lt": "late"}})


@pytest.mark.parametrize("name", ["sektor", "customer", "customer.name", "", "text"])
def test_an_unknown_field_is_refused_with_those_that_can_be_used(name: str) -> None:
    message = (
        f"cannot filter on {name!r}: the index has no such field. "
        "Its fields: customer.tier, id, minutes, sector, solved"
    )
    with pytest.raises(UsageError, match=re.escape(message)):
        compile_condition({name: "bank"})


@pytest.mark.parametrize(
    ("bounds", "message_part"),
    [({"above": 3}, "above"), ({"gt": 1, "to": 3}, "to"), ({}, "an empty range")],
)
def test_a_range_by_other_words_is_refused(bounds: dict[str, int], message_part: str) -> None:
    message = f"cannot filter 'minutes' by {message_part}: use gt, .*, exists"
    with pytest.raises(UsageError, match=message):
        compile_condition({"minutes": bounds})


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_an_integer_over_64_bits_is_refused_with_the_remedy(number: int) -> None:
    message = r"'customer.number' does not fit into an integer of 64 bits: give it as a string"
    with pytest.raises(InputError, match=message):
        list(leaves({"customer": {"number": number}}))


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_a_number_that_json_cannot_say_is_refused(number: float) -> None:
    with pytest.raises(InputError, match=r"'minutes' is infinite or not a number"):
        list(leaves({"minutes": number}))


METADATA: dict[str, Any] = {
    "sector": ["shop", "bank"],
    "minutes": 7,
    "solved": True,
    "code": "007",
    "customer": {"tier": "gold"},
    "gone": None,
}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, True),
        ({"sector": "bank"}, True),
        ({"sector": ["mail", "bank"]}, True),
        ({"sector": "mail"}, False),
        ({"sector": "bank", "minutes": "8"}, False),
        ({"minutes": "7"}, True),
        ({"minutes": ["seven", "7.0"]}, True),
        ({"minutes": {"gte": 7, "lt": "8"}}, True),
        ({"minutes": {"gt": 7}}, False),
        ({"minutes": "true"}, False),
        ({"solved": "true"}, True),
        ({"solved": "1"}, False),
        ({"code": "7"}, False),
        ({"customer.tier": "gold"}, True),
        ({"customer": "gold"}, False),
        ({"gone": "x"}, False),
        ({"unknown": "x"}, False),
        ({"id": "call-1"}, True),
        ({"id": ["call-2", "call-3"]}, False),
    ],
)
def test_a_document_is_selected_by_its_own_fields_and_their_types(
    where: dict[str, Any], expected: bool
) -> None:
    assert matches_where(where, "call-1", METADATA) == expected


def test_what_is_no_filter_for_any_document_is_an_error() -> None:
    with pytest.raises(UsageError, match="cannot filter 'minutes' by after: use gt, gte, lt"):
        check_where({"minutes": {"after": 3}})
    assert check_where(None) == {}


@pytest.mark.parametrize(
    ("metadata", "day"),
    [
        ({"opened": "2026-01-01", "date": "2026-01-02", "call_date": "2026-01-03"}, 3),
        ({"opened": "2026-01-01", "date": "2026-01-02"}, 2),
        ({"sector": "shop", "opened": "2026-01-01", "closed": "2026-01-04"}, 1),
        ({"date": "soon", "order": {"placed": "2026-01-05T10:00:00Z"}}, 5),
        ({"date": ["later", "2026-01-06"]}, 6),
        ({"sector": "shop", "year": 2026}, None),
        ({}, None),
    ],
)
def test_the_day_of_a_call_is_its_usual_field_else_its_first_date(
    metadata: dict[str, Any], day: int | None
) -> None:
    assert find_call_date(metadata) == (date(2026, 1, day) if day else None)


LONG = "field" * 400


@pytest.mark.parametrize(
    "call",
    [
        lambda: compile_where({LONG: "bank"}, FIELDS),
        lambda: compile_where({"sector": "bank", "": 1}, {LONG: "string"}),
        lambda: compile_where({LONG: True}, {LONG: "number"}),
        lambda: compile_where({LONG: {"gte": 5}}, {LONG: "date"}),
        lambda: check_where({LONG: {}}),
        lambda: check_where({"sector": {LONG: 1}}),
        lambda: list(leaves({LONG: 2**64})),
        lambda: list(leaves({LONG: float("inf")})),
        lambda: list(leaves({LONG: [[1]]})),
        lambda: list(leaves({f"{LONG}.": 1})),
        lambda: new_fields({LONG: "number"}, {LONG: "text"}, lambda *_: LONG),
    ],
)
def test_a_message_shows_the_beginning_of_a_long_name(call: Any) -> None:
    with pytest.raises((InputError, UsageError)) as caught:
        call()
    assert "fieldfield" in str(caught.value)
    assert len(str(caught.value)) < 400
