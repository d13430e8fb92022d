"""Which documents can be among the best, when their scores are known only roughly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_search.backends.server.skyband import (
    ABSENT,
    UNKNOWN,
    Bounds,
    PassageBounds,
    find_possible_documents,
)

Point = tuple[float, float]
Fuse = Callable[[Point], float]

FUSIONS: dict[str, Fuse] = {
    "the second leg": lambda point: point[1],
    "half of each": lambda point: point[0] + point[1],
    "mostly the first leg": lambda point: 99 * point[0] + point[1],
    "another shape": lambda point: point[0] / (point[0] + 3) + point[1] ** 3,
}

# few values, so that equal scores are common; all sums and products here are exact
SCORES = st.integers(0, 8).map(float)
ERRORS = st.sampled_from([0.0, 1.0, 2.0])


@st.composite
def bounds_around(draw: st.DrawFn, score: float) -> Bounds:
    bounds = Bounds(score - draw(ERRORS), score + draw(ERRORS))
    return draw(st.sampled_from([bounds, bounds, UNKNOWN]))


@st.composite
def passages(draw: st.DrawFn) -> tuple[str, Point, PassageBounds]:
    """A passage of one of eight documents, its true scores, and bounds around them."""
    document = f"d{draw(st.integers(0, 7))}"
    first, second = draw(SCORES), draw(SCORES)
    bounds = PassageBounds(document, draw(bounds_around(first)), draw(bounds_around(second)))
    return document, (first, second), bounds


@pytest.mark.parametrize("fuse", FUSIONS.values(), ids=FUSIONS)
@given(st.lists(passages(), max_size=40), st.integers(1, 8))
def test_every_document_that_can_be_among_the_best_is_possible(
    fuse: Fuse, created: list[tuple[str, Point, PassageBounds]], count: int
) -> None:
    """With equal scores any of the equal documents can be."""
    best: dict[str, float] = {}
    for document, point, _ in created:
        best[document] = max(best.get(document, -np.inf), fuse(point))
    least = min(sorted(best.values(), reverse=True)[:count], default=0)
    expected = {document for document, score in best.items() if score >= least}
    assert expected <= find_possible_documents([bounds for *_, bounds in created], count)


def make_exact(document: str, first: float, second: float) -> PassageBounds:
    return PassageBounds(document, Bounds(first, first), Bounds(second, second))


def test_where_both_legs_agree_only_the_best_are_possible() -> None:
    created = [make_exact(f"d{number}", -number, -number) for number in range(30)]
    assert find_possible_documents(created, 10) == {f"d{number}" for number in range(10)}


def test_where_the_legs_disagree_all_are_possible() -> None:
    created = [make_exact(f"d{number}", -number, number) for number in range(30)]
    assert len(find_possible_documents(created, 10)) == 30


def test_the_passages_of_a_document_count_once() -> None:
    """Three passages of one document are above the last, but only one document."""
    created = [make_exact("d0", 5, number) for number in (7, 8, 9)] + [make_exact("d1", 4, 6)]
    assert find_possible_documents(created, 2) == {"d0", "d1"}
    assert find_possible_documents(created, 1) == {"d0"}


def test_a_single_leg_keeps_those_of_equal_scores() -> None:
    scores = [9.0, 8.0, 8.0, 7.0]
    created = [
        PassageBounds(f"d{number}", ABSENT, Bounds(score, score))
        for number, score in enumerate(scores)
    ]
    assert find_possible_documents(created, 2) == {"d0", "d1", "d2"}


def test_what_is_unknown_is_possible_and_leaves_nothing_out() -> None:
    unknown = [PassageBounds(f"u{number}", UNKNOWN, UNKNOWN) for number in range(3)]
    created = [*unknown, make_exact("d0", 1, 1), make_exact("d1", 0, 0)]
    assert find_possible_documents(created, 1) == {"u0", "u1", "u2", "d0"}
