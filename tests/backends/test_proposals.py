"""Which of the passages that both legs propose on a server are scored exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_search.backends.server.first_pass import (
    KEYS_ONLY,
    BestSpans,
    FirstPass,
    build_estimating_pass,
)
from hybrid_search.backends.server.proposals import (
    SPARE_DOCUMENTS,
    Proposals,
    Windows,
    choose_exact,
    cut_windows,
    find_possible_documents,
    list_outranked,
)
from hybrid_search.backends.types import Key, PageOrder, Request

ESTIMATED = build_estimating_pass(Request("", np.zeros(288, np.float32), 1))
SCORED_BY_SERVER = replace(KEYS_ONLY, error=1e-4)
FIRST_PASSES = pytest.mark.parametrize("first_pass", [ESTIMATED, SCORED_BY_SERVER])
SHOWN = 10 + SPARE_DOCUMENTS
BY_BOTH = PageOrder(10, lambda bm25, spans: bm25 + spans)
BY_SPANS = PageOrder(10, lambda _, spans: spans)
BY_BM25 = PageOrder(10, lambda bm25, _: bm25)
REQUEST = Request("phrase", np.ones(32, np.float32), 100, page_order=BY_BOTH)
SPANS_ALONE = replace(REQUEST, lexical=False, page_order=BY_SPANS)


def make_proposals(count: int, unknown: int = 0) -> Proposals:
    """Return proposals of documents of two passages each, and of others without best spans."""
    numbers = np.random.default_rng(5).uniform(size=count).tolist()
    cosines = {f"d{number // 2}#{number % 2}": numbers[number] for number in range(count)}
    best_spans = {key: BestSpans(cosine, cosine) for key, cosine in cosines.items()}
    without = {f"old{number}#0": None for number in range(unknown)}
    bm25 = {key: float(count - number) for number, key in enumerate(cosines)}
    return Proposals(bm25, {**best_spans, **without})


def choose(proposals: Proposals, request: Request, first_pass: FirstPass) -> list[Key]:
    windows = cut_windows(proposals, request)
    return list(choose_exact(proposals, windows, request, first_pass.error))


@FIRST_PASSES
def test_by_spans_alone_those_of_the_best_documents_are_scored_exactly(
    first_pass: FirstPass,
) -> None:
    created = make_proposals(400)
    cosines = {key: best.cosine for key, best in created.best_spans.items() if best}
    ranked = sorted(cosines, key=lambda key: -cosines[key])
    documents = list(dict.fromkeys(key.partition("#")[0] for key in ranked))
    last = next(key for key in ranked if key.startswith(f"{documents[SHOWN - 1]}#"))
    # a score may be off by the error, and so may that which it is compared with
    expected = {key for key in ranked if cosines[key] >= cosines[last] - 2 * first_pass.error}
    keys = choose(created, SPANS_ALONE, first_pass)
    assert expected <= set(keys)
    assert len(keys) <= 2 * len(expected)  # and the other passages of their documents


@FIRST_PASSES
@pytest.mark.parametrize("weight", [0.01, 0.5, 20.0])
def test_with_both_legs_those_of_the_best_sums_are_scored_exactly(
    first_pass: FirstPass, weight: float
) -> None:
    created = make_proposals(400)
    order = PageOrder(10, lambda bm25, spans: weight * bm25 + spans)
    # within both windows: 100 of each leg
    lexical = list(created.bm25)[:100]
    cosines = {key: best.cosine for key, best in created.best_spans.items() if best}
    candidates = {*lexical, *sorted(cosines, key=lambda key: -cosines[key])[:100]}
    scores = {key: weight * created.bm25[key] + cosines[key] for key in candidates}
    documents = dict.fromkeys(
        key.partition("#")[0] for key in sorted(scores, key=lambda key: -scores[key])
    )
    best = list(documents)[:SHOWN]
    keys = choose(created, replace(REQUEST, page_order=order), first_pass)
    assert {key for key in candidates if key.partition("#")[0] in best} <= set(keys)
    assert len(keys) <= 60


def test_all_passages_of_a_document_that_can_be_on_the_page_are_scored_exactly() -> None:
    """A hit shows the best spans of all its passages."""
    scores = {f"d{number}#0": 0.9 - number / 1000 for number in range(30)}
    scores |= {"d3#7": 0.5, "d20#7": 0.5}
    best_spans = {key: BestSpans(score, score) for key, score in scores.items()}
    created = Proposals({}, best_spans)
    keys = choose(created, REQUEST, SCORED_BY_SERVER)
    assert set(keys) == {*(f"d{number}#0" for number in range(SHOWN)), "d3#7"}


def test_of_equal_cosines_the_first_ids_are_within_the_window() -> None:
    """Ten is behind nine: ordinals are compared as numbers."""
    cosines = {f"d#{number}": 0.5 for number in reversed(range(150))} | {"z#0": 0.9}
    best_spans = {key: BestSpans(cosine, cosine) for key, cosine in cosines.items()}
    created = Proposals({}, best_spans)
    keys = choose(created, replace(SPANS_ALONE, page_order=None), SCORED_BY_SERVER)
    assert keys == [*(f"d#{number}" for number in range(99)), "z#0"]


def test_of_the_window_those_of_the_best_scores_are_scored_exactly() -> None:
    """A passage of a high score is no candidate if 100 others have higher cosines."""
    cosines = {f"d{number}#0": 1 - number / 1000 for number in range(150)}
    best_spans = {key: BestSpans(cosine, -cosine) for key, cosine in cosines.items()}
    created = Proposals({}, best_spans)
    keys = choose(created, SPANS_ALONE, SCORED_BY_SERVER)
    assert set(keys) == {f"d{number}#0" for number in range(100 - SHOWN, 100)}
    estimated = choose(created, SPANS_ALONE, ESTIMATED)
    assert set(keys) <= set(estimated) <= {f"d{number}#0" for number in range(100)}


@pytest.mark.parametrize("has_all_matches", [True, False])
def test_a_passage_beyond_the_bm25_leg_can_have_as_much_as_its_last(
    *, has_all_matches: bool
) -> None:
    """Enough documents are nearer, but a full leg does not say which of them have the words."""
    best_spans = {f"d{number}#0": BestSpans(0.9, 0.9) for number in range(SHOWN)}
    best_spans |= {"far#0": BestSpans(0.5, 0.5), "listed#0": BestSpans(0.1, 0.1)}
    created = Proposals({"listed#0": 1.0}, best_spans, 0.0 if has_all_matches else 1.0)
    keys = choose(created, REQUEST, SCORED_BY_SERVER)
    assert ("far#0" in keys) is not has_all_matches


@FIRST_PASSES
def test_a_passage_that_was_written_while_the_legs_were_searched_is_scored_exactly(
    first_pass: FirstPass,
) -> None:
    """Only the search for BM25 scores has seen it, and the search for spans came before."""
    created = make_proposals(100)
    created = replace(created, bm25={"new#0": 200.0, **created.bm25})
    assert "new#0" in choose(created, REQUEST, first_pass)
    assert created.unknown == set()


def test_the_window_is_the_same_however_many_are_scored_exactly() -> None:
    """Else the last of one page would be the first of the next, or would be on none."""
    estimates = {"a#0": 0.9, "b#0": 0.8, "c#0": 0.85}
    best_spans = {key: BestSpans(cosine, cosine) for key, cosine in estimates.items()}
    request = replace(REQUEST, window=2)
    proposals = Proposals({}, best_spans)
    assert cut_windows(proposals, request) == Windows([], ["a#0", "c#0"])
    assert cut_windows(proposals, request, {"c#0": 0.7}) == Windows([], ["a#0", "c#0"])
    assert list_outranked(proposals, cut_windows(proposals, request), {"a#0"})[0].key == "c#0"


def test_passages_of_unknown_spans_take_their_places_by_their_exact_cosines() -> None:
    best_spans = {"a#0": BestSpans(0.9, 0.9), "b#0": BestSpans(0.8, 0.8), "old#0": None}
    request = replace(REQUEST, window=2)
    windows = cut_windows(Proposals({}, best_spans), request, {"old#0": 0.85})
    assert windows.semantic == ["a#0", "old#0"]


def test_a_document_that_crowds_both_legs_leaves_room_for_the_best_passages_of_others() -> None:
    """Four documents within windows of 4: the best 4 passages, and three more by their best."""
    keys = [*(f"crowd#{number}" for number in range(9)), "a#0", "a#1", "b#0", "c#0", "d#0"]
    scores = {key: 1 - number / 100 for number, key in enumerate(keys)}
    best_spans = {key: BestSpans(score, score) for key, score in scores.items()}
    windows = cut_windows(Proposals(scores, best_spans), replace(REQUEST, window=4))
    assert windows.lexical == windows.semantic
    assert windows.lexical == [*keys[:4], "a#0", "b#0", "c#0"]


@FIRST_PASSES
def test_without_an_order_the_whole_window_is_scored_exactly(first_pass: FirstPass) -> None:
    created, request = make_proposals(400), replace(REQUEST, page_order=None)
    keys = choose(created, request, first_pass)
    assert len(keys) >= 100
    windows = cut_windows(created, request)
    assert windows.lexical[:100] == list(created.bm25)[:100]
    assert {*windows.lexical, *windows.semantic} == set(keys)


def test_by_bm25_alone_those_of_the_best_documents_are_scored_exactly() -> None:
    created = make_proposals(400)
    created = replace(created, best_spans={})
    keys = choose(created, replace(REQUEST, semantic=False, page_order=BY_BM25), KEYS_ONLY)
    assert keys == sorted(f"d{number // 2}#{number % 2}" for number in range(2 * SHOWN))


@FIRST_PASSES
def test_passages_of_unknown_spans_are_all_scored_exactly(first_pass: FirstPass) -> None:
    created = make_proposals(200, unknown=50)
    keys = choose(created, REQUEST, first_pass)
    assert {key for key in keys if key.startswith("old")} == {f"old{n}#0" for n in range(50)}


# few values, so that equal scores are common; all sums here are exact
SCORES = st.integers(0, 8).map(float)
ERRORS = st.sampled_from([0.0, 1.0, 2.0, np.inf])
PASSAGES = st.tuples(st.integers(0, 7).map("d{}".format), SCORES, ERRORS, ERRORS)


@given(st.lists(PASSAGES, max_size=40), st.integers(1, 8))
def test_every_document_that_can_be_among_the_best_is_possible(
    passages: list[tuple[str, float, float, float]], count: int
) -> None:
    """With equal scores any of the equal documents can be."""
    best: dict[str, float] = {}
    for document, score, *_ in passages:
        best[document] = max(best.get(document, -np.inf), score)
    least = min(sorted(best.values(), reverse=True)[:count], default=0)
    expected = {document for document, score in best.items() if score >= least}
    documents = [document for document, *_ in passages]
    lowest = [score - below for _, score, below, _ in passages]
    highest = [score + above for _, score, _, above in passages]
    assert expected <= find_possible_documents(documents, lowest, highest, count)


def test_the_passages_of_a_document_count_once() -> None:
    """Three passages of one document are above the last, but only one document."""
    documents, scores = ["d0", "d0", "d0", "d1"], [9.0, 8.0, 7.0, 6.0]
    assert find_possible_documents(documents, scores, scores, 2) == {"d0", "d1"}
    assert find_possible_documents(documents, scores, scores, 1) == {"d0"}


def test_documents_of_equal_scores_are_all_possible() -> None:
    scores = [9.0, 8.0, 8.0, 7.0]
    assert find_possible_documents(["a", "b", "c", "d"], scores, scores, 2) == {"a", "b", "c"}


def test_what_is_unknown_is_possible_and_leaves_nothing_out() -> None:
    documents = ["u0", "u1", "d0", "d1"]
    lowest, highest = [-np.inf, -np.inf, 1.0, 0.0], [np.inf, np.inf, 1.0, 0.0]
    assert find_possible_documents(documents, lowest, highest, 1) == {"u0", "u1", "d0"}
