"""Convert a float32 graph to int8 or float16 with the onnx packages.

`graph_cache` decides when, and stores the result.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

BLOCK = 128
"""Numbers that share a scale in the products quantized by blocks.

With 32 they took twice the time and were no more exact.
"""

X86 = ("x86_64", "amd64")
EXACT_PRODUCTS = ("icelake", "alder", "sierra")
"""What numkong calls x86 processors with VNNI, which adds products of int8 without saturation."""


@cache
def saturates() -> bool:
    """Return whether ONNX Runtime's products with int8 weights saturate on this processor.

    On x86 without VNNI two products of 8 bits are added in 16 bits, which large ones exceed: a
    span's mean cosine with float32 was .9970 in place of .9983. Products with uint8 weights are
    exact there and took 8% more time (ONNX Runtime's documentation, "Quantize ONNX models").
    """
    if platform.machine().lower() not in X86:
        return False
    import numkong

    capabilities = numkong.get_capabilities()
    return not any(capabilities.get(name) for name in EXACT_PRODUCTS)


def write_int8(source: Path, path: Path) -> None:
    """Write the graph at `source` in dynamic int8 to `path`.

    Weights have one scale per channel (one per tensor lost 5% of cosine), activations one per
    product. Two kinds of products are exceptions:

    * The product that makes the vectors, if the graph has a head, stays in float32. It is 1.4% of
      MiniLM's multiplications, and in int8 it caused a quarter of the loss.
    * Products that narrow, a feed-forward's second, have a scale for each block of each row, in
      weights and activations. A few of their inputs are far larger than the rest, so that one scale
      per batch leaves the rest few steps. This raised a span's mean cosine with float32 from .9951
      to .9982, and the time by a sixth.

    Weights that are stored as float16 or int8 become float32 on the way, since preparing the graph
    computes all constants; tables that are stored as int8 stay as they are. No
    attention is fused: that was 10% slower, and as close to float32. What ONNX Runtime fuses by
    itself when it loads a graph is fused here, once, which leaves the first query 15 ms less to do.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory(prefix="hybrid_search-") as scratch:
        whole, prepared = Path(scratch) / "whole.onnx", Path(scratch) / "prepared.onnx"
        _join_weights(source, whole)
        quantized = Path(scratch) / "quantized.onnx"
        quant_pre_process(str(whole), str(prepared), skip_symbolic_shape=True)
        model = onnx.load(prepared)
        last = _name_output_nodes(model)
        onnx.save(_quantize_by_blocks(model, _find_narrowing_products(model) - last), prepared)
        quantize_dynamic(
            str(prepared),
            str(quantized),
            per_channel=True,
            weight_type=QuantType.QInt8,
            nodes_to_exclude=sorted(last | _find_scale_lookups(model)),
        )
        if saturates():
            model = onnx.load(quantized)
            _make_weights_unsigned(model)
            onnx.save(model, quantized)
        _optimize(quantized, path, "ORT_ENABLE_EXTENDED")


def _join_weights(source: Path, path: Path) -> None:
    """Write the graph at `source` with the weights that lie beside it to the one file `path`."""
    import onnx

    onnx.save(onnx.load(source), path)


def _make_weights_unsigned(model: Any) -> None:
    """Add 128 to the weights of all products of integers and to their zero points.

    The products of such weights, less their zero points, are the same integers.
    """
    from onnx import numpy_helper

    names = {
        name for node in model.graph.node if node.op_type == "MatMulInteger" for name in node.input
    }
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if tensor.name in names and values.dtype == np.int8:
            unsigned = (values.astype(np.int16) + 128).astype(np.uint8)
            tensor.CopyFrom(numpy_helper.from_array(unsigned, tensor.name))


def _name_output_nodes(model: Any) -> set[str]:
    """Return the names of the nodes that compute the graph's outputs.

    Nodes without a name get one first, since they could not be told apart.
    """
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}-{number}"
    outputs = {output.name for output in model.graph.output}
    return {node.name for node in model.graph.node if outputs & set(node.output)}


def _find_narrowing_products(model: Any) -> set[str]:
    """Return the names of the products whose weight has more rows than columns."""
    shapes = {weight.name: tuple(weight.dims) for weight in model.graph.initializer}
    weights = {
        node.name: shapes.get(node.input[1], ())
        for node in model.graph.node
        if node.op_type == "MatMul"
    }
    return {name for name, shape in weights.items() if len(shape) == 2 and shape[0] > shape[1]}


def _find_scale_lookups(model: Any) -> set[str]:
    """Return the names of the lookups in tables of one column.

    These are the scales of the rows of tables that are stored as int8.
    """
    columns = {weight.name for weight in model.graph.initializer if list(weight.dims[1:]) == [1]}
    return {
        node.name
        for node in model.graph.node
        if node.op_type == "Gather" and node.input[0] in columns
    }


def _quantize_by_blocks(model: Any, names: Collection[str]) -> Any:
    """Return the model with the products of these names in int8, one scale per block."""
    from onnxruntime.quantization.matmul_nbits_quantizer import (
        DefaultWeightOnlyQuantConfig,
        MatMulNBitsQuantizer,
    )

    computed_in_int8 = 4  # the operator's accuracy_level
    config = DefaultWeightOnlyQuantConfig(
        block_size=BLOCK, is_symmetric=True, accuracy_level=computed_in_int8, bits=8
    )
    excluded = [node.name for node in model.graph.node if node.name not in names]
    quantizer = MatMulNBitsQuantizer(model, algo_config=config, nodes_to_exclude=excluded)
    quantizer.process()
    return quantizer.model.model


def write_float16(source: Path, path: Path) -> None:
    """Write the graph at `source` with weights and arithmetic in float16 to `path`.

    Token ids go in and float32 vectors come out as before.
    """
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with tempfile.TemporaryDirectory(prefix="hybrid_search-") as scratch:
        whole, folded = Path(scratch) / "whole.onnx", Path(scratch) / "folded.onnx"
        _join_weights(source, whole)
        _optimize(whole, folded, "ORT_ENABLE_BASIC")
        onnx.save(convert_float_to_float16(onnx.load(folded), keep_io_types=True), path)


def _optimize(source: Path, path: Path, level: str) -> None:
    """Write the graph as ONNX Runtime optimizes it up to a level of `GraphOptimizationLevel`.

    ORT_ENABLE_BASIC computes all constants, which turns float16 weights into float32, and adds no
    operators that only ONNX Runtime has. ORT_ENABLE_EXTENDED fuses nodes to such operators.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


CONVERTERS: Mapping[str, Callable[[Path, Path], None]] = {
    "int8": write_int8,
    "float16": write_float16,
}
"""The function that makes each precision: from the graph at the first path, to the second."""
