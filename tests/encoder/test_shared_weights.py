"""The weights that the graphs of a model folder share: codes, their files, and their faults."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper, numpy_helper
from onnx.external_data_helper import uses_external_data

from export.codes import BLOCK, decode_weights, encode_weights
from hybrid_search.encoder import model_folder
from hybrid_search.encoder.onnx import OnnxEncoder
from hybrid_search.errors import ModelError
from tests.helpers.small_model import (
    DIMENSION,
    make_graph,
    make_model_folder,
    token_vectors,
    write_settings,
)

WIDTH = 2 * BLOCK
LIMIT = 1_960_000
"""Bytes of a file. The table of 30,522 words has 1,953,408, so that the rest goes into another."""

GRAPHS = ("int8.onnx", "int8-unsigned.onnx", "float16.onnx")


def read_weights(model: ModelProto) -> dict[str, np.ndarray]:
    return {weight.name: numpy_helper.to_array(weight) for weight in model.graph.initializer}


def encode(model: ModelProto) -> dict[str, np.ndarray]:
    """Return the weights of a graph after they were encoded."""
    encode_weights(model)
    return read_weights(model)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_model_folder(tmp_path / "model", graph=make_graph(WIDTH))


def test_codes_take_the_place_of_products_and_lookups_and_halves_that_of_the_head() -> None:
    held = {
        name: (str(array.dtype), array.shape) for name, array in encode(make_graph(WIDTH)).items()
    }
    assert held == {
        "words/int8": ("int8", (30522, DIMENSION)),
        "words/scales": ("float32", (30522, 1)),
        "first/int8": ("int8", (1, DIMENSION, WIDTH)),
        "first/scales": ("float32", (1, 1, WIDTH)),
        "first/shape": ("int64", (2,)),
        "second/int8": ("int8", (2, BLOCK, DIMENSION)),
        "second/scales": ("float32", (2, 1, DIMENSION)),
        "second/shape": ("int64", (2,)),
        "head/float16": ("float16", (DIMENSION, DIMENSION)),
        "last": ("int64", (1,)),
    }


def test_no_weight_is_further_from_its_code_than_half_a_step() -> None:
    graph = make_graph(WIDTH)
    before = {name: array.copy() for name, array in read_weights(graph).items()}
    before["words"][0] = 0  # as of a word piece that is never used
    before["first"][:, 3] = 0
    before["second"][5, 7] = 100  # what it costs stays in its block
    for weight in graph.graph.initializer:
        weight.CopyFrom(numpy_helper.from_array(before[weight.name], weight.name))
    after = encode(graph)
    decoded = decode_weights(graph)
    assert decoded.keys() == {"words", "first", "second", "head"}
    for name in ("words", "first", "second"):
        scales = after[f"{name}/scales"]
        errors = np.abs(decoded[name] - before[name]).reshape(after[f"{name}/int8"].shape)
        assert (errors / scales).max() < 0.5001
    assert after["second/scales"][0, 0, 7] == np.float32(100) / np.float32(127)
    assert after["second/scales"][1, 0, 7] < 0.01


def test_a_table_that_is_also_used_otherwise_is_kept_in_halves() -> None:
    graph = make_graph()
    graph.graph.node.insert(0, helper.make_node("Shape", ["words"], ["shape"]))
    after = encode(graph)
    assert after["words/float16"].dtype == np.float16
    assert "words/int8" not in after


def test_a_weight_that_float16_cannot_hold_is_not_exported() -> None:
    large = make_graph()
    weights: np.ndarray = np.full((DIMENSION, DIMENSION), 1e5, dtype=np.float32)
    large.graph.initializer[3].CopyFrom(numpy_helper.from_array(weights, "head"))
    with pytest.raises(SystemExit, match="weight head has numbers that float16 cannot hold"):
        encode_weights(large)


def test_no_graph_has_weights_of_its_own(model: Path) -> None:
    for name in GRAPHS:
        graph = onnx.load(model / name, load_external_data=False).graph
        shared = {tensor.name for tensor in graph.initializer if uses_external_data(tensor)}
        assert shared >= {"words/int8", "words/scales", "first/int8", "second/int8", "head/float16"}
        assert (model / name).stat().st_size < 10_000
    assert "weights.data" in model_folder.read(model).sha256
    codes = decode_weights(onnx.load(model / "int8.onnx"))
    halves = decode_weights(onnx.load(model / "float16.onnx"))
    assert np.array_equal(codes["words"], halves["words"])


@pytest.mark.parametrize("precision", ["int8", "float16"])
def test_weights_in_several_files_give_the_same_vectors(
    model: Path, tmp_path: Path, precision: str
) -> None:
    split = make_model_folder(tmp_path / "split", graph=make_graph(WIDTH), limit=LIMIT)
    sizes = {path.name: path.stat().st_size for path in split.glob("weights*")}
    assert sizes.keys() >= {"weights.data", "weights-2.data"}
    assert max(sizes.values()) <= LIMIT
    vectors, expected = (
        token_vectors(OnnxEncoder(folder, "cpu", precision=precision)) for folder in (split, model)
    )
    np.testing.assert_array_equal(vectors, expected)


def test_a_weight_larger_than_a_file_may_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="and a file may have 5000"):
        make_model_folder(tmp_path / "model", limit=5000)


def test_weights_that_the_settings_do_not_name_are_missed_by_the_graph(model: Path) -> None:
    (model / "weights.data").unlink()
    write_settings(model, json.loads((model / "encoder.json").read_text()))
    with pytest.raises(ModelError, match=r"int8.*\.onnx cannot be run .*weights\.data.* Export"):
        OnnxEncoder(model, "cpu")


def test_a_folder_without_a_graph_is_refused(model: Path) -> None:
    for name in GRAPHS:
        (model / name).unlink()
    write_settings(model, json.loads((model / "encoder.json").read_text()))
    with pytest.raises(ModelError, match=r"sha256 names none of int8\.onnx, float16\.onnx"):
        OnnxEncoder(model, "cpu")
