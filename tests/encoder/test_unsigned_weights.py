"""Products of int8 on the processor that the tests run on."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from export.ready_graphs import make_unsigned
from hybrid_search.encoder.precisions import saturates

ROWS, COLUMNS = 16, 64
LARGEST_SUM = 255 * 127 * COLUMNS
"""Each product is of the largest activation and the largest weight."""


def make_product(weight: int, zero_point: int, dtype: type) -> ModelProto:
    """Return a graph that multiplies uint8 activations by a matrix of one weight."""
    node = helper.make_node("MatMulInteger", ["a", "b", "a_zero", "b_zero"], ["sums"])
    weights: np.ndarray = np.full((COLUMNS, COLUMNS), weight, dtype=dtype)
    initializers = [
        numpy_helper.from_array(weights, "b"),
        numpy_helper.from_array(np.array(0, np.uint8), "a_zero"),
        numpy_helper.from_array(np.full(COLUMNS, zero_point, dtype=dtype), "b_zero"),
    ]
    activations = helper.make_tensor_value_info("a", TensorProto.UINT8, ["rows", COLUMNS])
    sums = helper.make_tensor_value_info("sums", TensorProto.INT32, ["rows", COLUMNS])
    graph = helper.make_graph([node], "product", [activations], [sums], initializers)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8)


def largest_sums(model: ModelProto) -> np.ndarray:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    sums: np.ndarray = session.run(["sums"], {"a": np.full((ROWS, COLUMNS), 255, np.uint8)})[0]
    return sums


@pytest.mark.skipif(saturates(), reason="products of int8 saturate on this processor")
def test_where_products_do_not_saturate_they_are_exact() -> None:
    assert (largest_sums(make_product(127, 0, np.int8)) == LARGEST_SUM).all()


def test_products_with_unsigned_weights_are_exact_on_every_processor() -> None:
    model = make_unsigned(make_product(127, 0, np.int8))
    (product,) = [node for node in model.graph.node if node.op_type == "MatMulInteger"]
    assert list(product.input) == ["a", "b/unsigned", "a_zero", "unsigned/zero-point"]
    assert (largest_sums(model) == LARGEST_SUM).all()
