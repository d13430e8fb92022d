"""What is within the window of a leg."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hybrid_search.backends.window import choose_window


def test_the_best_passages_come_first_and_then_one_of_each_further_document() -> None:
    assert choose_window("aaaabacbd", 3) == [0, 1, 2, 4, 6]
    assert choose_window("abcabc", 3) == [0, 1, 2]
    assert choose_window("aaaa", 3) == [0, 1, 2]
    assert choose_window("", 3) == []


@given(st.text("abcd"), st.integers(1, 5))
def test_it_holds_as_many_documents_as_there_are_up_to_its_size(
    documents: str, window: int
) -> None:
    positions = choose_window(documents, window)
    assert positions[:window] == list(range(min(window, len(documents))))
    assert positions == sorted(set(positions))
    assert len({documents[position] for position in positions}) == min(window, len(set(documents)))
    assert len(positions) < 2 * window
