"""Which passages the span leg proposes, by the cosines of their words and spans."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_search.backends.embedded.near_passages import (
    MARGIN,
    RANK,
    Limits,
    compute_limits,
    count_near,
    select_best,
    select_of_documents,
)

SCORES = st.lists(
    st.lists(st.one_of(st.just(-np.inf), st.integers(-9, 9).map(float)), max_size=6),
    min_size=1,
    max_size=4,
)


@given(SCORES, st.integers(1, 12))
def test_the_best_of_all_lists_are_selected(lists: list[list[float]], count: int) -> None:
    scores = [np.array(values, np.float32) for values in lists]
    selected = select_best(scores, count)
    values = [float(own[row]) for own, rows in zip(scores, selected, strict=True) for row in rows]
    usable = sorted((value for own in lists for value in own if value > -np.inf), reverse=True)
    assert sorted(values, reverse=True) == usable[:count]
    assert all(np.array_equal(rows, np.unique(rows)) for rows in selected)


@given(st.integers(0, 200), st.integers(0, 200), st.integers(1, 300), st.integers(0, 300))
def test_as_many_are_proposed_as_are_near_the_best(
    near: int, far: int, least: int, more: int
) -> None:
    """Passages within the margin of the rank's score, in two lists, far ones in both."""
    scores = np.full(RANK + near, 0.5, np.float32)
    scores[RANK:] -= MARGIN / 2
    distant = np.full(far, 0.5 - 2 * MARGIN, np.float32)
    lists = [np.concatenate([scores[::2], distant]), scores[1::2]]
    most = least + more
    assert count_near(lists, Limits(least, most, MARGIN)) == min(max(RANK + near, least), most)


@pytest.mark.parametrize(
    ("passages", "most", "margin"),
    [(100, 600, 0.04), (35_000, 600, 0.04), (350_000, 1200, 0.06), (3_500_000, 2400, 0.08)],
)
def test_more_are_proposed_of_a_larger_index(passages: int, most: int, margin: float) -> None:
    limits = compute_limits(passages, 100)
    assert (limits.least, limits.most) == (150, most)
    assert limits.margin == pytest.approx(margin)


@pytest.mark.parametrize("least", [400, 1000])
def test_a_long_page_is_filled(least: int) -> None:
    limits = compute_limits(35_000, least)
    assert (limits.least, limits.most) == (least, max(least, 600))


def test_of_fewer_than_the_rank_all_that_are_asked_for_are_proposed() -> None:
    assert count_near([np.zeros(RANK - 1, np.float32)], Limits(150, 600, MARGIN)) == 150


@given(SCORES, st.integers(1, 12), st.integers(1, 6), st.data())
def test_the_best_of_further_documents_are_selected_too(
    lists: list[list[float]], count: int, least_documents: int, data: st.DataObject
) -> None:
    """Compared with going through all of them, the best first."""
    scores = [np.array(values, np.float32) for values in lists]
    joined = np.concatenate(scores)
    size = len(joined)
    numbers = st.lists(st.integers(0, 4), min_size=size, max_size=size)
    documents = np.array(data.draw(numbers), np.int64)
    selected = select_of_documents(scores, count, documents.__getitem__, least_documents).tolist()
    usable = [row for row in np.argsort(-joined, kind="stable").tolist() if joined[row] > -np.inf]
    assert sorted(set(selected)) == selected
    best, expected = sorted(joined[selected].tolist()), sorted(joined[usable].tolist())
    assert best[-count:] == expected[-count:]
    reachable = {int(documents[row]) for row in usable}
    found = {int(documents[row]) for row in selected}
    assert len(found) >= min(least_documents, len(reachable))
    for document in found:
        best = max(joined[row] for row in usable if documents[row] == document)
        assert best == max(joined[row] for row in selected if documents[row] == document)
