"""The fixed maps of cosine and BM25 onto [0, 1], and the file that holds their parameters."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.encoder.model_folder import CALIBRATION
from hybrid_search.errors import ModelError
from hybrid_search.search.calibration import (
    MEASURED,
    RANGES,
    ROUGH,
    Calibration,
    find_mention_map,
    load,
)

FITTED = {"midpoint": 0.42, "slope": 14.0, "saturation": 1.7}
OTHER = {"midpoint": 0.45, "slope": 12.0, "saturation": 1.6}

COSINES = st.lists(st.floats(min_value=-1.0, max_value=1.0), min_size=2, max_size=20)
SCORES = st.lists(st.floats(min_value=0.0, max_value=500.0), min_size=2, max_size=20)
CALIBRATIONS = st.builds(
    Calibration,
    midpoint=st.floats(min_value=-1.0, max_value=1.0),
    slope=st.floats(min_value=0.1, max_value=50.0),
    saturation=st.floats(min_value=0.01, max_value=20.0),
)


def write_calibration(folder: Path, content: object) -> Path:
    text = content if isinstance(content, (str, bytes)) else json.dumps(content)
    (folder / CALIBRATION).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def test_a_cosine_is_mapped_by_a_logistic() -> None:
    # slope 4 about 0.5: at 0.5 the half, at 0.75 1 / (1 + e^-1), at -0.5 1 / (1 + e^4)
    mapped = Calibration(midpoint=0.5, slope=4.0).span(np.array([0.5, 0.75, -0.5]))
    assert mapped.tolist() == pytest.approx([0.5, 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(4))])


def test_a_bm25_score_saturates() -> None:
    # s / (s + 2 * 3): nothing for nothing, the half at 6, 3/4 at 18
    mapped = Calibration(saturation=2.0).bm25(np.array([0.0, 6.0, 18.0]), terms=3)
    assert mapped.tolist() == pytest.approx([0.0, 0.5, 0.75])


def test_a_phrase_without_a_term_is_mapped_as_one_with_one() -> None:
    assert Calibration(saturation=2.0).bm25(np.array([2.0]), terms=0).tolist() == [0.5]


@settings(deadline=None, max_examples=100)
@given(CALIBRATIONS, COSINES, SCORES, st.integers(min_value=0, max_value=30))
def test_both_maps_rise_and_stay_between_0_and_1(
    calibration: Calibration, cosines: list[float], scores: list[float], terms: int
) -> None:
    cosine, bm25 = (
        calibration.span(np.array(sorted(cosines))),
        calibration.bm25(np.array(sorted(scores)), terms),
    )
    assert (np.diff(bm25) >= 0).all()
    assert (np.diff(cosine) >= -1e-15).all()  # numpy's exp may be off by the last bit
    assert all(((mapped >= 0) & (mapped <= 1)).all() for mapped in (cosine, bm25))


def test_rounding_does_not_turn_two_bm25_scores_round() -> None:
    # s / (s + half) gives 0.9651446500..., the smaller score one last bit more than the larger
    low, high = Calibration(saturation=2.5795801260025755).bm25(
        np.array([499.99999999999994, 500.0]), terms=7
    )
    assert low <= high


def test_scores_that_differ_are_still_told_apart() -> None:
    mapped = Calibration().span(np.linspace(-1, 1, 201))
    assert (np.diff(mapped) > 0).all()
    assert (np.diff(Calibration().bm25(np.linspace(0, 100, 201), 3)) > 0).all()


def test_the_calibration_of_the_passages_precision_is_taken(tmp_path: Path) -> None:
    write_calibration(tmp_path, {"precisions": {"int8": OTHER, "float16": FITTED}})
    assert load(tmp_path, "float16") == Calibration(0.42, 14.0, 1.7)
    assert load(tmp_path, "int8") == Calibration(0.45, 12.0, 1.6)


def test_a_precision_without_its_own_gets_another_ones_and_else_the_middle(tmp_path: Path) -> None:
    write_calibration(tmp_path, {"precisions": {"int8": FITTED}})
    assert load(tmp_path, "float32") == Calibration(0.42, 14.0, 1.7)
    nothing = Calibration(midpoint=0.5, slope=10.0, saturation=1.0)
    assert load(tmp_path / "nowhere", "int8") == nothing


def test_a_map_of_mentions_is_for_one_dimension_and_rough_without(tmp_path: Path) -> None:
    measured = {"midpoint": 1.1, "slope": 16.0, "spread": 0.05}
    tables = {"precisions": {"int8": OTHER}, "scores": {"int8": FITTED}}
    write_calibration(tmp_path, {**tables, "mentions": {"288": measured}})
    load_maps = partial(load, tmp_path)
    assert find_mention_map(load_maps, "float16", 288, has_prior=True) == (
        Calibration(1.1, 16.0, spread=0.05),
        MEASURED,
    )
    rough = Calibration(0.42, 14.0, 1.7)
    assert find_mention_map(load_maps, "int8", 64, has_prior=True) == (rough, ROUGH)
    moved = find_mention_map(load_maps, "int8", 288, has_prior=True, has_feedback=True)
    assert moved == (rough, ROUGH)
    by_cosine = find_mention_map(load_maps, "int8", 288, has_prior=False)
    assert by_cosine == (Calibration(0.45, 12.0, 1.6), ROUGH)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00",
        "",
        "{",
        "[]",
        "{}",
        '{"precisions": {}}',
        '{"precisions": []}',
        '{"precisions": {"int8": 3}}',
        '{"precisions": {"int8": {"slop": 3}}}',
        '{"precisions": {"int8": {"slope": "steep"}}}',
        '{"precisions": {"int8": {"slope": null}}}',
        '{"precisions": {"int8": {"slope": NaN}}}',
        '{"precisions": {"int8": {"slope": -4}}}',
        '{"precisions": {"int8": {"saturation": 0}}}',
        '{"precisions": {"int8": {"saturation": Infinity}}}',
        '{"precisions": {"int8": {"midpoint": 1e308}}}',
    ],
)
def test_a_damaged_file_is_named_with_the_remedy(tmp_path: Path, content: str | bytes) -> None:
    message = rf"{CALIBRATION} cannot be used \(.+\): copy it again from where"
    with pytest.raises(ModelError, match=message):
        load(write_calibration(tmp_path, content), "int8")


@pytest.mark.parametrize("name", RANGES)
def test_scores_at_the_ends_of_the_ranges_are_numbers_from_0_to_1(name: str) -> None:
    for value in RANGES[name]:
        maps = Calibration(**{name: value})
        with np.errstate(over="ignore"):
            mapped = [*maps.span(np.array([-1.0, 0.0, 1.0])), *maps.bm25(np.array([0, 1e6]), 500)]
        assert all(0.0 <= score <= 1.0 for score in mapped)


@pytest.mark.parametrize("target", ["nothing", "calibration.json", "folder"])
def test_a_calibration_that_is_there_and_cannot_be_read_is_an_error(
    tmp_path: Path, target: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "calibration.json").symlink_to(tmp_path / target)
    with pytest.raises(ModelError, match=r"calibration\.json cannot be read \(.*copy it again"):
        load(tmp_path, "int8")
