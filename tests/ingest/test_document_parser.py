"""The document parser: which lines are documents, and the reason why the others are not.

A reason has no content of the line: that is in the detail, which is for the rejects file.
"""

from __future__ import annotations

import gc
import json
import sys
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.backends.types import IndexSpec
from hybrid_search.errors import InputError
from hybrid_search.ingest.document_parser import (
    MAX_DEPTH,
    MAX_ID_BYTES,
    MAX_TEXT_BYTES,
    parse,
    source_hash,
)
from hybrid_search.text.types import Document, Turn

SPEC = IndexSpec("a model", "0123456789abcdef", 384, "int8", "turn", "6/1")


def parse_document(value: Any) -> Document:
    return parse(value if isinstance(value, bytes) else json.dumps(value).encode())[0]


def hash_line(line: bytes, spec: IndexSpec = SPEC) -> str:
    return source_hash(parse(line)[1], spec)


def nested_document(levels: int, innermost: str = "1") -> bytes:
    """Return a document with `levels` nested objects, itself the first."""
    opening, closing = b'{"m": ' * (levels - 1), b"}" * (levels - 1)
    return b'{"id": "a", "text": "x", "m": ' + opening + innermost.encode() + closing + b"}"


TURN = {"speaker": "agent", "text": "Hello."}

REFUSED_LINES: dict[str, tuple[Any, str]] = {
    "not JSON": (
        b"{bad}",
        "not JSON: Expecting property name enclosed in double quotes (at character 1)",
    ),
    "two objects on a line": (
        b'{"id": "a", "text": "x"} {}',
        "not JSON: Extra data (at character 25)",
    ),
    "not UTF-8": (b'{"id": "a", "text": "caf\xe9"}', "not UTF-8 (byte 0xe9 at 24)"),
    "Infinity": (
        b'{"id": "a", "text": "x", "n": Infinity}',
        "metadata field 'n' is infinite or not a number, ",
    ),
    "a number that only fits infinity": (
        b'{"id": "a", "text": "x", "n": 1e999}',
        "metadata field 'n' is infinite or not a number, ",
    ),
    "an integer of 65 bits": (
        {"id": "a", "text": "x", "n": 2**63},
        "metadata field 'n' does not fit into an integer of 64 bits: ",
    ),
    "an integer of 5000 digits": (
        b'{"id": "a", "text": "x", "n": ' + b"9" * 5000 + b"}",
        "not readable JSON (Exceeds the limit",
    ),
    "a list": ([1], "not an object: a JSON list"),
    "no id": (
        {"text": "x"},
        (
            "no id: if other keys have them, name these, as in --columns id=call_id,text=body "
            "(the keys are ['text'])"
        ),
    ),
    "other keys than a document has": (
        {"nid": 1, "body": "x"},
        "no id: if other keys have them, name these, as in --columns id=nid,text=body "
        "(the keys are ['body', 'nid'])",
    ),
    "an object around a list": (
        {"tickets": [{"id": 1, "text": "x"}]},
        "no id: if the list in the object has the documents, take it out: jq '.[]' FILE",
    ),
    "a list as id": (
        {"id": [7], "text": "x"},
        "id must be a text or a whole number, and is a list (id is [7])",
    ),
    "a number with decimals as id": (
        {"id": 5.5, "text": "x"},
        "id must be a text or a whole number (id is 5.5)",
    ),
    "a truth as id": (
        {"id": True, "text": "x"},
        "id must be a text or a whole number, and is true (id is True)",
    ),
    "a key that stands twice": (
        b'{"id": "a", "text": "first", "text": "second"}',
        "the key 'text' stands twice in one object: keep one of them",
    ),
    "Infinity in a turn": (
        b'{"id": "a", "turns": [{"text": "Infinity", "gains": [1, {"n": Infinity}]}]}',
        "'turns.gains.n' is infinite, which JSON cannot hold: give a finite number",
    ),
    "an empty id": ({"id": "", "text": "x"}, "the id is empty"),
    "an id that is too long": (
        {"id": "é" * 251, "text": "x"},
        "the id has more than 500 bytes (it has 502 bytes)",
    ),  # é takes 2 bytes
    "neither text nor turns": (
        {"id": "a"},
        (
            "neither of text and turns: if other keys have them, name these, as in "
            "--columns id=call_id,text=body"
        ),
    ),
    "both text and turns": (
        {"id": "a", "text": "x", "turns": [TURN]},
        "both of text and turns: give one of them",
    ),
    "a text as turns": (
        {"id": "a", "turns": "x"},
        "turns must be a list, and is a text (turns is 'x')",
    ),
    "a list as turn": (
        {"id": "a", "turns": [TURN, ["x"]]},
        "one of turns must be an object, and is a list (turns.1 is ['x'])",
    ),
    "a turn without text": (
        {"id": "a", "turns": [{"speaker": "agent"}]},
        "turns.text is missing: if other keys have them, name these, as in --columns",
    ),
    "an object as speaker": (
        {"id": "a", "turns": [{**TURN, "speaker": {"name": "Ann"}}]},
        "turns.speaker must be a text or a whole number, and is an object "
        "(turns.0.speaker is {'name': 'Ann'})",
    ),
    "an empty text": ({"id": "a", "text": ""}, "the text is empty"),
    "no turns": ({"id": "a", "turns": []}, "the text is empty"),
    "a negative time": (
        {"id": "a", "turns": [{**TURN, "start_ms": -1}]},
        "turns.start_ms must be at least 0 (turns.0.start_ms is -1)",
    ),
    "a word as time": (
        {"id": "a", "turns": [{**TURN, "start_ms": "soon"}]},
        "turns.start_ms must be a number of milliseconds",
    ),
    "a NUL in a key": ({"id": "a", "text": "x", "m\0": 1}, "a NUL character (U+0000)"),
    "a NUL behind a backslash": ({"id": "a", "text": "\\\0"}, "a NUL character (U+0000)"),
    "a lone surrogate": (
        b'{"id": "a", "text": "\\ud83d!"}',
        "a lone surrogate, which UTF-8 cannot encode (U+D83D)",
    ),
    "a list in a list of an object": (
        {"id": "a", "text": "x", "m": {"n": [1, [2]]}},
        "metadata field 'm.n' holds a list inside a list: ",
    ),
    "100,000 braces": (nested_document(100_000), "nested too deeply: at most 20 "),
    "one brace too many": (nested_document(MAX_DEPTH + 1), "nested too deeply: at most 20 "),
}


@pytest.mark.parametrize("case", REFUSED_LINES)
def test_a_line_that_is_no_document_is_refused_with_its_reason(case: str) -> None:
    value, reason = REFUSED_LINES[case]
    with pytest.raises(InputError) as error:
        parse_document(value)
    detail = f" ({error.value.detail})" if error.value.detail else ""
    assert f"{error.value}{detail}".startswith(reason)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("depth", [150, 950, 5000])
def test_what_the_garbage_collector_calls_has_room_while_a_nested_line_is_read(depth: int) -> None:
    failures = []

    def note_failure(failure: object) -> None:
        failures.append(failure)

    def recurse(levels: int) -> int:
        return levels and recurse(levels - 1)

    def collect(_phase: str, _counts: dict[str, int]) -> None:
        recurse(100)  # as a finalizer does that calls other functions

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", note_failure)
        thresholds = gc.get_threshold()
        gc.callbacks.append(collect)
        gc.set_threshold(1)
        try:
            with pytest.raises(InputError, match="nested too deeply"):
                parse_document(b'{"id": "a", "m": ' + b"[" * depth + b"]" * depth + b"}")
        finally:
            gc.set_threshold(*thresholds)
            gc.callbacks.remove(collect)
    assert failures == []


def test_brackets_inside_strings_do_not_nest() -> None:
    text = '[{"' * 1000 + "\\"
    assert parse_document({"id": "a", "text": text}).text == text


def test_a_text_is_one_turn_and_all_other_keys_are_metadata() -> None:
    document = parse_document(
        {
            "id": "a",
            "text": "One.\nTwo.",
            "sector": "bank",
            "customer": {"tier": 1},
            "tags": ["x", "y"],
            "none": None,
        }
    )
    metadata = {"sector": "bank", "customer": {"tier": 1}, "tags": ["x", "y"], "none": None}
    assert document == Document("a", "One.\nTwo.", (Turn("One.\nTwo."),), metadata)


def test_turns_are_joined_by_one_newline_and_begin_where_they_say() -> None:
    document = parse_document(
        {
            "id": "a",
            "turns": [{"text": "Hello."}, {"text": ""}, {"text": "Hi \n"}, {"text": "Bye 👋"}],
        }
    )
    assert document.text == "Hello.\n\nHi \n\nBye 👋"
    # Each turn begins one newline after the end of the turn before:
    # 0, 0 + 6 + 1, 7 + 0 + 1, 8 + 4 + 1.
    assert [turn.start for turn in document.turns] == [0, 7, 8, 13]
    assert [document.text[turn.start : turn.end] for turn in document.turns] == [
        "Hello.",
        "",
        "Hi \n",
        "Bye 👋",
    ]


def test_speakers_times_and_unknown_keys_stay_with_their_turn() -> None:
    document = parse_document(
        {
            "id": "a",
            "turns": [
                {**TURN, "start_ms": 10, "end_ms": 20, "channel": {"side": "left"}, "extra": 1},
                {"text": "Hi."},
            ],
        }
    )
    assert document.turns[0] == Turn(
        "Hello.", 0, "agent", 10, 20, {"channel": {"side": "left"}, "extra": 1}
    )
    assert document.turns[1] == Turn("Hi.", 7)
    assert document.metadata == {}


def test_a_time_may_be_written_as_a_whole_float() -> None:
    assert parse_document({"id": "a", "turns": [{**TURN, "start_ms": 5.0}]}).turns[0].start_ms == 5


def test_null_is_as_good_as_absent_where_one_of_two_keys_is_wanted() -> None:
    assert parse_document({"id": "a", "text": None, "turns": [TURN]}).text == "Hello."
    assert parse_document({"id": "a", "text": "x", "turns": None}).text == "x"


def test_a_backslash_and_u0000_are_six_characters_and_no_nul() -> None:
    assert parse_document(b'{"id": "a", "text": "\\\\u0000"}').text == "\\u0000"


def test_a_byte_order_mark_before_the_object_is_passed_over() -> None:
    assert parse_document(b'\xef\xbb\xbf{"id": "a", "text": "x"}').id == "a"


def test_harmless_types_are_converted_to_the_one_meaning_that_they_have() -> None:
    document = parse_document(
        b"""{"id": 17, "text": "", "csat": NaN, "turns": [
            {"speaker": 0, "text": 12, "start_ms": "1200", "end_ms": 1300.6},
            {"speaker": 1.0, "text": "Hi.", "start_ms": "1400.4", "end_ms": null}, "Bye."]}"""
    )
    assert attrgetter("id", "text", "metadata")(document) == ("17", "12\nHi.\nBye.", {"csat": None})
    assert [(turn.speaker, turn.start_ms, turn.end_ms) for turn in document.turns] == [
        ("0", 1200, 1301),
        ("1", 1400, None),
        (None, None, None),
    ]
    assert parse_document({"id": 17.0, "text": "x", "turns": []}).id == "17"


def test_an_integer_of_64_bits_is_kept_to_the_last_digit() -> None:
    assert parse_document({"id": "a", "text": "x", "n": 2**63 - 1, "m": -(2**63)}).metadata == {
        "n": 9223372036854775807,
        "m": -9223372036854775808,
    }


def test_an_id_may_have_500_bytes() -> None:
    assert len(parse_document({"id": "é" * 250, "text": "x"}).id.encode()) == MAX_ID_BYTES == 500


def test_twenty_objects_inside_one_another_are_enough_and_allowed() -> None:
    assert parse_document(nested_document(MAX_DEPTH)).id == "a"


def test_a_text_may_have_10_mb_and_not_one_byte_more() -> None:
    line = '{"id": "a", "text": "%s"}'
    fits = "é" * (MAX_TEXT_BYTES // 2)  # 2 bytes each
    assert len(parse_document((line % fits).encode()).text) == 5 * 1024 * 1024
    message = "the text has more than 10485760 bytes: split the document"
    with pytest.raises(InputError, match=message):
        parse_document((line % (fits + "x")).encode())


def test_turns_that_are_10_mb_only_together_are_too_long_as_well() -> None:
    half = {"text": "x" * (MAX_TEXT_BYTES // 2)}
    with pytest.raises(
        InputError, match="the text has more than 10485760 bytes"
    ):  # the newline between them is the one too many
        parse_document({"id": "a", "turns": [half, half]})


def test_the_hash_does_not_depend_on_the_order_of_keys_or_on_spaces() -> None:
    assert hash_line(b'{"id": "a", "text": "x", "m": {"b": 1, "c": 2}}') == hash_line(
        b'{"m":{"c":2,"b":1},"text":"x","id":"a"}'
    )
    assert hash_line('{"id": "a", "text": "é"}'.encode()) == hash_line(
        b'{"id": "a", "text": "\\u00e9"}'
    )


@pytest.mark.parametrize(
    "changed",
    [
        b'{"id": "b", "text": "x", "m": 1}',
        b'{"id": "a", "text": "x ", "m": 1}',
        b'{"id": "a", "text": "x", "m": 2}',
        b'{"id": "a", "text": "x", "m": "1"}',
        b'{"id": "a", "text": "x"}',
        b'{"id": "a", "turns": [{"text": "x"}], "m": 1}',
    ],
)
def test_the_hash_changes_with_the_content(changed: bytes) -> None:
    assert hash_line(changed) != hash_line(b'{"id": "a", "text": "x", "m": 1}')


def test_the_hash_changes_with_policy_and_model_but_not_with_the_precision() -> None:
    line = b'{"id": "a", "text": "x"}'
    assert hash_line(line, replace(SPEC, policy="6+12/2")) != hash_line(line)
    assert hash_line(line, replace(SPEC, fingerprint="fedcba9876543210")) != hash_line(line)
    assert hash_line(line, replace(SPEC, schema=SPEC.schema + 1)) != hash_line(line)
    assert hash_line(line, replace(SPEC, precision="float32")) == hash_line(line)


KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.none() | st.booleans() | NUMBERS | KEYS
NAMES = KEYS.filter(
    lambda key: key not in ("id", "text", "turns") and all(map(str.strip, key.split(".")))
)
METADATA = st.dictionaries(NAMES, VALUES | st.lists(VALUES, max_size=3), max_size=4)


@given(text=KEYS.filter(str.strip), metadata=METADATA)
@settings(deadline=None, max_examples=100)
def test_text_and_metadata_come_through_as_they_were_given(
    text: str, metadata: dict[str, Any]
) -> None:
    document = parse_document({"id": "a", "text": text, **metadata})
    assert (document.text, document.metadata) == (text, metadata)


JSON = st.recursive(
    VALUES | st.text(max_size=3),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(KEYS, inside, max_size=3),
    max_leaves=8,
)
TURNS = st.lists(
    st.fixed_dictionaries(
        {"text": st.text(max_size=5)}, optional={"speaker": JSON, "start_ms": JSON, "x": JSON}
    )
    | JSON,
    max_size=3,
)
ALMOST = st.fixed_dictionaries(
    {},
    optional={
        "id": st.just("a") | JSON,
        "text": KEYS | JSON,
        "turns": TURNS | JSON,
        "m": JSON,
        "\ud800": JSON,
    },
)


@given(ALMOST | JSON, st.binary(max_size=3))
@settings(deadline=None, max_examples=300)
def test_whatever_the_line_it_is_a_document_or_an_input_error(value: Any, suffix: bytes) -> None:
    try:
        document = parse_document(json.dumps(value).encode() + suffix)
    except InputError as error:
        assert str(error)
    else:
        assert all(document.text[turn.start : turn.end] == turn.text for turn in document.turns)


WORD_TIMES_ERROR = (
    "turns: word_times must have [start, end, start_ms, end_ms] of each word, "
    "in order and within the text"
)


@pytest.mark.parametrize(
    "word_times",
    [
        [[0, 4, 100, 50]],
        [[0, 5, 0, 1]],
        [[2, 2, 0, 1]],
        [[1, 2, 0, 1], [0, 1, 1, 2]],
        [[0, 2, 0, 1], [1, 3, 1, 2]],
    ],
)
def test_times_of_words_that_are_in_no_order_or_place_are_refused(word_times: list[Any]) -> None:
    turn = {"text": "Good", "word_times": word_times}
    with pytest.raises(InputError) as error:
        parse_document({"id": "a", "turns": [turn]})
    assert str(error.value) == WORD_TIMES_ERROR


@pytest.mark.parametrize("word_times", [7, "x", [1], [[1, 2, 3]], [[0, 1, -1, 2]], [{"word": "a"}]])
def test_times_of_words_of_another_form_are_refused(word_times: Any) -> None:
    with pytest.raises(InputError, match=r"^(?:one of )?turns.word_times (?:must be|is missing)"):
        parse_document({"id": "a", "turns": [{"text": "Good", "word_times": word_times}]})


def test_the_times_of_words_are_those_of_the_words_without_punctuation() -> None:
    text = "\u201cHello,\u201d don't - go."
    word_times = [[0, 8, 0, 10], [9, 14, 10, 20], [15, 16, 20, 20], [17, 20, 20, 30]]
    turn = {"text": text, "word_times": word_times}
    (parsed,) = parse_document({"id": "a", "turns": [turn]}).turns
    words = [text[start:end] for start, end, _, _ in parsed.word_times]
    assert words == ["Hello", "don't", "go"]
    assert parsed.word_times[2] == (17, 19, 20, 30)
    assert parse_document({"id": "a", "turns": [{**turn, "word_times": None}]}).turns[0] == Turn(
        text
    )
