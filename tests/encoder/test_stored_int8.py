"""Model folders whose weights are kept as int8: what the file holds, and what is made of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper, numpy_helper

from export import stored
from hybrid_search.encoder.onnx import OnnxEncoder
from hybrid_search.encoder.quantization import BLOCK
from hybrid_search.text.types import Floats
from tests.helpers.small_model import (
    DIMENSION,
    make_graph,
    make_model_folder,
    mean_cosine,
    token_vectors,
)

WIDTH = 2 * BLOCK
MIN_COSINE = 0.9998
"""The lowest accepted mean cosine of a token's vector with that of the float32 graph.

With these random weights it was .9999 in all precisions.
"""


@pytest.fixture(scope="module")
def float32_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder that has float32 only."""
    return make_model_folder(
        tmp_path_factory.mktemp("models") / "whole",
        "float32",
        lambda path: onnx.save(make_graph(WIDTH), path),
    )


@pytest.fixture(scope="module")
def model(float32_folder: Path) -> Path:
    """A model folder of the same weights, stored as int8."""
    return make_model_folder(
        float32_folder.parent / "stored",
        "stored-int8",
        lambda path: stored.write_int8(float32_folder / "model.onnx", path),
    )


def read_weights(graph: ModelProto) -> dict[str, np.ndarray]:
    return {weight.name: numpy_helper.to_array(weight) for weight in graph.graph.initializer}


def store(graph: ModelProto, folder: Path) -> dict[str, np.ndarray]:
    """Return the weights of a graph after it was stored as int8."""
    onnx.save(graph, folder / "float32.onnx")
    stored.write_int8(folder / "float32.onnx", folder / "stored.onnx")
    return read_weights(onnx.load(folder / "stored.onnx"))


def make_graph_of(model: Path, precision: str, cache: Path) -> dict[str, np.ndarray]:
    """Return the weights of the graph that is made in a precision."""
    OnnxEncoder(model, "cpu", precision=precision, cache=cache)
    (path,) = cache.rglob("*.onnx")
    return read_weights(onnx.load(path))


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_every_precision_gives_nearly_the_vectors_of_the_weights_before(
    model: Path, float32_folder: Path, tmp_path: Path, precision: str
) -> None:
    encoder = OnnxEncoder(model, "cpu", precision=precision, cache=tmp_path)
    assert encoder.info.precision == precision
    actual, expected = token_vectors(encoder), token_vectors(OnnxEncoder(float32_folder, "cpu"))
    assert mean_cosine(actual, expected) > MIN_COSINE


def test_the_file_holds_codes_of_products_and_lookups_and_halves_of_the_head(
    model: Path, float32_folder: Path
) -> None:
    weights = read_weights(onnx.load(model / "model.onnx"))
    held = {name: (str(array.dtype), array.shape) for name, array in weights.items()}
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
    sizes = [(folder / "model.onnx").stat().st_size for folder in (model, float32_folder)]
    assert 0.25 < sizes[0] / sizes[1] < 0.28


def test_no_weight_is_further_from_its_code_than_half_a_step(tmp_path: Path) -> None:
    graph = make_graph(WIDTH)
    before = {name: array.copy() for name, array in read_weights(graph).items()}
    before["words"][0] = 0  # as of a word piece that is never used
    before["first"][:, 3] = 0
    before["second"][5, 7] = 100  # what it costs stays in its block
    for weight in graph.graph.initializer:
        weight.CopyFrom(numpy_helper.from_array(before[weight.name], weight.name))
    after = store(graph, tmp_path)
    for name in ("words", "first", "second"):
        scales = after[f"{name}/scales"]
        values: Floats = after[f"{name}/int8"] * scales
        errors = np.abs(values - before[name].reshape(values.shape)) / scales
        assert errors.max() < 0.5001
    assert after["second/scales"][0, 0, 7] == np.float32(100) / np.float32(127)
    assert after["second/scales"][1, 0, 7] < 0.01


def test_the_int8_graph_has_the_codes_of_the_file(model: Path, tmp_path: Path) -> None:
    weights = read_weights(onnx.load(model / "model.onnx"))
    made = make_graph_of(model, "int8", tmp_path)
    for name in ("words/int8", "words/scales"):
        assert np.array_equal(made[name], weights[name])
    codes = made["first_quantized"].astype(np.int16) - made["first_zero_point"].astype(np.int16)
    assert np.array_equal(codes, weights["first/int8"][0])
    assert made["first_scale"] == pytest.approx(weights["first/scales"].ravel(), rel=1e-6)


def test_the_float16_graph_looks_words_up_by_the_codes_of_the_file(
    model: Path, tmp_path: Path
) -> None:
    weights = read_weights(onnx.load(model / "model.onnx"))
    made = make_graph_of(model, "float16", tmp_path)
    assert np.array_equal(made["words/int8"], weights["words/int8"])
    assert made["first"].dtype == np.float16
    values = weights["first/int8"][0] * weights["first/scales"][0]
    assert np.array_equal(made["first"], values.astype(np.float16))


def test_a_table_that_is_also_used_otherwise_is_kept_in_halves(tmp_path: Path) -> None:
    graph = make_graph()
    graph.graph.node.insert(0, helper.make_node("Shape", ["words"], ["shape"]))
    after = store(graph, tmp_path)
    assert after["words/float16"].dtype == np.float16
    assert "words/int8" not in after
