"""Pairs of turns that look alike: a pair is right if the turn that says it scores higher."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.quality.distinctions import Pair, count_right, read_pairs
from tests.conftest import DATA


def make_pair(kind: str) -> Pair:
    return Pair(kind, "refund", "I got a refund", "I got no refund")


def test_a_pair_is_right_only_if_the_turn_that_says_it_scores_higher() -> None:
    pairs = [make_pair("negation"), make_pair("negation"), make_pair("role")]
    # column 0 is of the first phrase, whose turns are rows 0 and 1, and so on
    scores = np.zeros((6, 3))
    scores[0, 0], scores[1, 0] = 0.5, 0.4
    scores[2, 1], scores[3, 1] = 0.4, 0.5
    scores[4, 2], scores[5, 2] = 0.3, 0.3
    assert count_right(pairs, scores) == {"negation": 1, "role": 0}


@pytest.mark.data
def test_the_pairs_differ_and_have_both_turns() -> None:
    pairs = read_pairs(DATA)
    assert len({pair.phrase for pair in pairs}) >= 80
    assert all(pair.right.strip() and pair.wrong.strip() for pair in pairs)
    assert all(pair.right != pair.wrong for pair in pairs)
