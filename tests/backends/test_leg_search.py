"""What the legs of a query propose on a server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hybrid_search.backends.server.leg_search import read_proposals
from hybrid_search.backends.server.reach import Reach
from hybrid_search.backends.types import Request

REQUEST = Request("phrase", np.ones(32, np.float32), 100)


def make_hits(*ids: str) -> list[dict[str, Any]]:
    return [
        {"_score": 9.0 - number, "fields": {"document_id": [id_], "ordinal": [0]}}
        for number, id_ in enumerate(ids)
    ]


def test_a_passage_of_both_legs_is_proposed_once() -> None:
    """One that was written meanwhile can be in the BM25 leg alone."""
    legs = {"lexical": make_hits("both", "new"), "semantic": make_hits("near", "both")}
    further = {"lexical": make_hits("other")}
    proposals = read_proposals(legs, further, REQUEST, Reach(300, 400))
    assert sorted(proposals.hits) == ["both#0", "near#0", "new#0", "other#0"]
    assert list(proposals.bm25) == ["both#0", "new#0", "other#0"]


def test_by_bm25_alone_nothing_is_proposed_for_the_span_leg() -> None:
    request = replace(REQUEST, semantic=False)
    proposals = read_proposals({"lexical": make_hits("a")}, {}, request, Reach(200))
    assert (proposals.bm25, proposals.hits) == ({"a#0": 9.0}, {})


@pytest.mark.parametrize(("by_words", "expected"), [(3, True), (2, False), (0, False)])
def test_a_full_leg_does_not_say_whether_others_have_a_word(
    by_words: int, *, expected: bool
) -> None:
    legs = {"lexical": make_hits("a", "b")[:by_words]}
    assert read_proposals(legs, {}, REQUEST, Reach(by_words)).has_all_matches is expected
