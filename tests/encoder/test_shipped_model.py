"""Rules of the model benchmarks: encode once, commit no data rows, calibrate each dimension."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.quality.dev import figures
from benchmarks.quality.encoders import Model
from benchmarks.quality.sizes import CachingEncoder
from hybrid_search.encoder import SHIPPED, EncoderInfo
from hybrid_search.search.calibration import Calibration
from hybrid_search.text.types import Encoding
from tests.helpers.tiny_encoder import TinyEncoder


class CountingEncoder:
    """Counts the texts that it encodes."""

    def __init__(self) -> None:
        self.tiny, self.texts = TinyEncoder(), 0

    @property
    def info(self) -> EncoderInfo:
        return self.tiny.info

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        self.texts += len(texts)
        return self.tiny.encode(texts)


def test_a_text_is_encoded_once() -> None:
    counting = CountingEncoder()
    reader = CachingEncoder(counting)
    first = reader.encode(["a kettle", "a cup", "a kettle"])
    again = reader.encode(["a cup", "a spoon"])
    assert counting.texts == 3
    assert np.array_equal(first[0].vectors, first[2].vectors)
    assert np.array_equal(first[1].vectors, again[0].vectors)
    assert np.array_equal(again[1].vectors, counting.tiny.encode(["a spoon"])[0].vectors)


def test_a_result_that_is_committed_holds_no_row_of_the_data() -> None:
    measured = {
        "stsb-context": {
            "setups": {"single pass": {"pearson": 0.7, "scores": "0.1 0.9"}},
            "gold": "1.0 5.0",
        },
        "pic": {"pairs": 3},
    }
    assert figures(measured) == {
        "stsb-context": {"setups": {"single pass": {"pearson": 0.7}}},
        "pic": {"pairs": 3},
    }


def test_a_size_has_its_own_calibration_and_its_own_results(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(SHIPPED, folder)
    fitted = {
        "int8": {"midpoint": 0.4, "slope": 4, "saturation": 1},
        "int8-384": {"midpoint": 0.6, "slope": 5, "saturation": 2},
    }
    calibration = json.dumps({"precisions": fitted})
    (folder / "calibration.json").write_text(calibration)
    settings = json.loads((folder / "encoder.json").read_text())
    settings["sizes"] = [64, 384]
    settings["sha256"]["calibration.json"] = hashlib.sha256(calibration.encode()).hexdigest()
    (folder / "encoder.json").write_text(json.dumps(settings))
    usual, full_size = Model(folder, "int8"), Model(folder, "int8", 384)
    assert (usual.encoder.info.dimension, full_size.encoder.info.dimension) == (64, 384)
    assert usual.calibration == Calibration(0.4, 4, 1)
    assert full_size.calibration == Calibration(0.6, 5, 2)
    assert usual.suffix() != full_size.suffix()
