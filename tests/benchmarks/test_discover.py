"""The figures of the benchmark of `discover`, on groups whose figures are known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.quality import discover
from benchmarks.quality.discover import FIRST, Place, Turns

LABELS: dict[Place, str] = {
    **{("call", turn): "refund" for turn in range(10)},
    **{("call", turn): "cancel" for turn in range(10, 20)},
}


def test_an_intent_is_found_by_a_group_that_is_mostly_of_it() -> None:
    assert discover.find_intents({("call", 0): 0}, LABELS) == {"refund"}
    mixed = {("call", turn): 0 for turn in (0, 1, 10, 11)}
    assert discover.find_intents(mixed, LABELS) == {"refund"}  # half of it, and the first of equals
    spread = {place: place[1] % 3 for place in LABELS}
    spread_labels = {**LABELS, **{("other", turn): f"intent {turn}" for turn in range(30)}}
    spread |= {("other", turn): turn % 3 for turn in range(30)}
    assert discover.find_intents(spread, spread_labels) == set()
    many = {("call", turn): "refund" for turn in range(11)}
    assert discover.find_intents({("call", 0): 0}, many) == set()  # less than a tenth of it
    assert discover.find_intents({("other", 1): 0}, LABELS) == set()


def test_perfect_groups_have_perfect_figures() -> None:
    groups = {place: int(intent == "cancel") for place, intent in LABELS.items()}
    figures = discover.judge(groups, LABELS, {"refund", "cancel"})
    assert figures == {"found": 2, "intents": ["cancel", "refund"], "V": 1.0, "AMI": 1.0}
    nothing = discover.judge({}, LABELS, {"refund", "cancel"})
    assert (nothing["found"], nothing["V"]) == (0, 0.0)


def test_k_means_ranks_its_clusters_by_size() -> None:
    angles = np.array([0.0, 0.01, 0.02, 2.0, 2.01, 4.0])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    places = [("call", turn) for turn in range(6)]
    groups = discover.group_by_k_means(Turns(places, ["text"] * 6, vectors), 3)
    assert [groups[place] for place in places] == [0, 0, 0, 1, 1, 2]
    assert max(groups.values()) < FIRST


def test_the_halves_are_drawn_by_name() -> None:
    lines = ['{"id": "b"}', '{"id": "a"}']
    assert [query["id"] for query in discover.sort_queries(lines)] == ["a", "b"]


def test_turns_are_selected_by_row() -> None:
    turns = Turns([("a", 0), ("b", 0)], ["x", "y"], np.eye(2, dtype=np.float32))
    selected = turns.select(np.array([1]))
    assert (selected.places, selected.texts) == ([("b", 0)], ["y"])
    assert selected.vectors.tolist() == pytest.approx(np.array([[0.0, 1.0]]))
