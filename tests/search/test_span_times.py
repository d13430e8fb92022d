"""The times of a span: those of its words, or interpolated by characters."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_search.backends.turn_layout import pack_word_times, unpack_word_times
from hybrid_search.search.span_content import find_times

WORDS = [(0, 3, 1000, 1200), (4, 9, 1200, 1900), (20, 25, 5000, 5400)]
TURN = {"turn": 2, "start": 100, "end": 130, "start_ms": 1000, "end_ms": 7000}
TIMED = {**TURN, "word_times": pack_word_times(WORDS)}


def test_packed_word_times_unpack_to_the_same() -> None:
    assert pack_word_times(WORDS) == [[0, 3, 1, 5, 11, 5], [1000, 200, 0, 700, 3100, 400]]
    assert unpack_word_times(pack_word_times(WORDS)) == WORDS


@pytest.mark.parametrize(
    ("turn", "start", "end", "times"),
    [
        (TIMED, 0, 3, (1000, 1200, "words")),
        (TIMED, 4, 25, (1200, 5400, "words")),
        # 9 is 1900 ms and 20 is 5000: character 12 is at 1900 + 3/11 of 3100, 15 at 6/11
        (TIMED, 12, 15, (2745, 3591, "interpolated")),
        # the first word is timed, the end is 4/5 of the third word: 5000 + .8 * 400
        (TIMED, 4, 24, (1200, 5320, "interpolated")),
        # 25 is 5400 ms and the turn's end, 30, is 7000
        (TIMED, 26, 30, (5720, 7000, "interpolated")),
        # 30 characters in 6 seconds: 200 ms each
        (TURN, 10, 20, (3000, 5000, "interpolated")),
        ({**TURN, "start_ms": 9000}, 10, 20, (9000, 9000, "interpolated")),  # it ends before
        ({**TURN, "end_ms": None}, 10, 20, (1000, None, "turn")),
        ({"turn": 0, "start": 0, "end": 30}, 10, 20, (None, None, None)),
        # beyond the only words known, nothing is earlier or later than they are
        ({**TIMED, "start_ms": None, "end_ms": None}, 26, 30, (5400, 5400, "interpolated")),
    ],
)
def test_a_span_has_the_times_of_its_words_or_of_the_characters_between(
    turn: dict[str, Any], start: int, end: int, times: tuple[int | None, int | None, str | None]
) -> None:
    assert find_times(turn, start, end) == times


@pytest.mark.parametrize(
    "damage",
    [
        {"word_times": 7},
        {"word_times": [["a"], [1]]},
        {"word_times": [[0, 3], [5]]},
        {"word_times": [[1], [2], [3]]},
        {"start_ms": "soon"},
        {"end_ms": [1]},
    ],
)
def test_a_damaged_record_of_times_gives_none(damage: dict[str, Any]) -> None:
    assert find_times({**TURN, **damage}, 10, 20) == (None, None, None)
