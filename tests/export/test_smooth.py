"""Activations smoothed for int8: the vectors stay what they are in float32, and in int8 come nearer
to them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from export import smooth
from export.package import LARGEST
from export.ready_graphs import write_int8
from hybrid_search.encoder import SHIPPED
from hybrid_search.encoder.precisions import graph_name
from hybrid_search.text.types import Floats

TOKENIZER = SHIPPED / "tokenizer.json"
TEXTS = ["I would like a refund for my order.", "The river bank was muddy.", "Where is my parcel?"]
WIDTH, WORDS = 32, 30522


def weights() -> dict[str, Floats]:
    """Random ones; one channel of the normalisation is forty times as large as the rest, as in
    BERT's encoders.
    """
    random = np.random.default_rng(3)
    scale = np.ones(WIDTH)
    scale[7] = 40
    weights_by_name = {
        "words": random.standard_normal((WORDS, WIDTH)),
        "scale": scale,
        "shift": np.zeros(WIDTH),
        "one": random.standard_normal((WIDTH, WIDTH)) / 8,
        "two": random.standard_normal((WIDTH, WIDTH)) / 8,
        "head": random.standard_normal((WIDTH, WIDTH)) / 8,
    }
    weights_by_name["one"][7] = weights_by_name["two"][7] = random.standard_normal(WIDTH) / 80
    return {name: value.astype(np.float32) for name, value in weights_by_name.items()}


def write_graph(path: Path, second: str = "two") -> Path:
    """A normalisation that two products read, whose sum goes through a head.

    `second` names the weight of the second product.
    """
    nodes = [
        helper.make_node("Gather", ["words", "input_ids"], ["embedded"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
        helper.make_node("Mul", ["embedded", "column"], ["masked"]),
        helper.make_node("LayerNormalization", ["masked", "scale", "shift"], ["normal"], axis=-1),
        helper.make_node("MatMul", ["normal", "one"], ["first"], name="first"),
        helper.make_node("MatMul", ["normal", second], ["second"], name="second"),
        helper.make_node("Add", ["first", "second"], ["both"]),
        helper.make_node("MatMul", ["both", "head"], ["token_vectors"], name="head"),
    ]
    ids, mask = (
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask")
    )
    output = helper.make_tensor_value_info(
        "token_vectors", TensorProto.FLOAT, ["batch", "tokens", WIDTH]
    )
    initializers = [
        numpy_helper.from_array(value, name)
        for name, value in weights().items()
        if name != "two" or second == "two"
    ]
    initializers.append(numpy_helper.from_array(np.array([-1]), "last"))
    graph = helper.make_graph(nodes, "small", [ids, mask], [output], initializers)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    return path


def vectors(path: Path) -> Floats:
    import onnxruntime

    ids = np.arange(1000, 1400).reshape(20, 20)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    token_vectors: Floats = session.run(
        None, {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    )[0]
    return token_vectors


def int8_vectors(path: Path) -> Floats:
    folder = path.with_suffix("")
    folder.mkdir()
    write_int8(onnx.load(path), folder, LARGEST)
    return vectors(folder / graph_name("int8"))


def mean_error(actual: Floats, expected: Floats) -> float:
    return float(np.abs(actual - expected).mean())


def test_vectors_stay_in_float32_and_come_nearer_to_it_in_int8(tmp_path: Path) -> None:
    plain, smoothed = write_graph(tmp_path / "plain.onnx"), write_graph(tmp_path / "smoothed.onnx")
    smooth.smooth(smoothed, TOKENIZER, TEXTS)
    expected = vectors(plain)
    np.testing.assert_allclose(vectors(smoothed), expected, rtol=1e-4, atol=1e-5)
    assert (
        mean_error(int8_vectors(smoothed), expected) < mean_error(int8_vectors(plain), expected) / 2
    )


def test_products_of_one_normalisation_share_a_division_and_the_head_is_left_alone(
    tmp_path: Path,
) -> None:
    path = write_graph(tmp_path / "model.onnx")
    smooth.smooth(path, TOKENIZER, TEXTS)
    model = onnx.load(path)
    inputs = {node.name: node.input[0] for node in model.graph.node if node.op_type == "MatMul"}
    assert inputs["first"] == inputs["second"] != "normal"
    assert inputs["head"] == "both"
    stored_weights = {
        weight.name: numpy_helper.to_array(weight) for weight in model.graph.initializer
    }
    assert np.array_equal(stored_weights["head"], weights()["head"])
    divided = 1 / stored_weights["normal/smooth"]
    assert divided.argmax() == 7
    np.testing.assert_allclose(
        stored_weights["one"], weights()["one"] * divided[:, None], rtol=1e-5
    )


@pytest.mark.parametrize("second", ["one", "two"])
def test_a_weight_that_two_products_share_is_not_multiplied_twice(
    tmp_path: Path, second: str
) -> None:
    plain, smoothed = (
        write_graph(tmp_path / "plain.onnx", second),
        write_graph(tmp_path / "smoothed.onnx", second),
    )
    smooth.smooth(smoothed, TOKENIZER, TEXTS)
    np.testing.assert_allclose(vectors(smoothed), vectors(plain), rtol=1e-4, atol=1e-5)
