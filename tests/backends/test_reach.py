"""How far an index on a server is searched: further the larger it is, and as far as is asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hybrid_search.backends.server.reach import IndexSize, Reach, choose_reach
from hybrid_search.backends.types import Request

REQUEST = Request("phrase", np.ones(32, np.float32), 100)


@pytest.mark.parametrize(
    ("passages", "shards", "expected"),
    [
        (0, 1, Reach(300, 400, 2_500)),
        (35_000, 1, Reach(300, 400, 3_500)),  # a shard is searched for a tenth
        (140_000, 1, Reach(600, 800, 10_000)),  # four times the passages: twice as many proposed
        (140_000, 2, Reach(600, 800, 7_000)),
        (350_000, 5, Reach(949, 1_265, 7_000)),  # times the root of 10
        (50_000_000, 100, Reach(1_500, 2_000, 10_000)),
    ],
)
def test_a_larger_index_is_searched_further(passages: int, shards: int, expected: Reach) -> None:
    size = IndexSize(passages, shards)
    assert choose_reach("opensearch", REQUEST, size) == expected


def test_elasticsearch_is_searched_for_more() -> None:
    size = IndexSize(350_000, 5)
    assert choose_reach("elasticsearch", REQUEST, size) == Reach(949, 1_265, 10_000)


def test_a_wide_window_is_filled_by_both_legs() -> None:
    size = IndexSize(1_000, 1)
    wide = replace(REQUEST, window=450)
    assert choose_reach("opensearch", wide, size) == Reach(450, 900, 2_500)


def test_passages_that_come_as_keys_are_as_many_as_are_asked() -> None:
    wide = replace(REQUEST, window=5_000)
    size = IndexSize(9, 1)
    assert choose_reach("opensearch", wide, size) == Reach(5_000, 5_000, 2_500)
    by_spans = replace(wide, lexical=False)
    assert choose_reach("opensearch", by_spans, size) == Reach(0, 5_000, 2_500)
