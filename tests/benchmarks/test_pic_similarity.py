"""PiC's phrase similarity as a dev set: cosines of pairs, and the area under the ROC curve."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks.quality import pic_similarity
from tests.helpers.json_lines import write_rows
from tests.helpers.table_encoder import TableEncoder

ENCODER = TableEncoder(
    {"big": (1, 0, 0), "large": (0.8, 0.6, 0), "odd": (0.6, 0.8, 0), "wrong": (0, 1, 0)}, crowd=2
)


def make_pair(second: str, label: int, sentence: str = "a {} one") -> dict[str, object]:
    return {
        "phrase1": "big",
        "phrase2": second,
        "sentence1": sentence.format("big"),
        "sentence2": sentence.format(second),
        "label": label,
    }


def test_a_pair_alone_and_in_its_sentences() -> None:
    # alone (1, 0, 0) and (.8, .6, 0); in a sentence of three words both have (0, 0, 1) added: (.8 +
    # 1) / (sqrt 2 * sqrt 2)
    assert pic_similarity.cosines(ENCODER, make_pair("large", 1)) == pytest.approx((0.8, 0.9))


def test_a_phrase_that_its_sentence_does_not_hold_is_left_out() -> None:
    assert (
        pic_similarity.cosines(ENCODER, {**make_pair("large", 1), "sentence2": "something else"})
        is None
    )


def test_the_area_under_the_curve(tmp_path: Path) -> None:
    # right .8 and 0, wrong .6 and 0: .8 > .6, .8 > 0, 0 < .6, and 0 = 0 is half
    rows = [
        make_pair("large", 1),
        make_pair("odd", 0),
        make_pair("wrong", 1),
        make_pair("wrong", 0),
        {**make_pair("odd", 1), "sentence1": "nothing"},
    ]
    write_rows(tmp_path / pic_similarity.FILE, rows)
    measured = pic_similarity.measure(ENCODER, tmp_path)
    assert measured == {"pairs": 4, "phrases alone": 2.5 / 4, "in context": 2.5 / 4}
    assert not math.isnan(measured["in context"])
