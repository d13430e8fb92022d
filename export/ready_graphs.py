"""The graphs of a model folder, which run as they are and share their weights.

All are made of one graph with coded weights (`export.codes`), and compute from the codes what they
need; ONNX Runtime does so once, when it loads a graph. What it fuses by itself is fused here
already, which leaves less to do at each start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from export import weights
from export.codes import DECODERS, SUFFIXES, code_names, encode_weights
from hybrid_search.encoder.precisions import UNSIGNED

OPTIMIZED = "com.microsoft"
"""The domain of operators that only ONNX Runtime has."""

ZERO_POINTS = {"DynamicQuantizeMatMul": 3, "MatMulIntegerToFloat": 5, "MatMulInteger": 3}
"""Products of integers, and which of their inputs is the zero point of the weight, input 1."""

COMPUTED_IN_INT8 = 4
"""The ``accuracy_level`` of products by blocks."""


def write_int8(model: ModelProto, folder: Path, limit: int) -> None:
    """Write the graphs in int8 and float16 of a float32 graph, and the weights that they share.

    A file of weights has at most `limit` bytes.
    """
    encode_weights(model)
    names = {tensor.name for tensor in model.graph.initializer if tensor.name.endswith(SUFFIXES)}
    write_coded(model, weights.write(model, names, folder, limit), folder)


def write_coded(coded: ModelProto, places: weights.Places, folder: Path) -> None:
    """Write the graphs in int8 and float16 of a graph with coded weights, which lie at `places`."""
    int8 = make_int8(coded)
    graphs = {
        "int8.onnx": int8,
        UNSIGNED: make_unsigned(int8),
        "float16.onnx": make_float16(coded),
    }
    for name, graph in graphs.items():
        _save(graph, places, folder / name)


def write_float32(model: ModelProto, folder: Path, limit: int) -> None:
    """Write a float32 graph, and its weights in files of at most `limit` bytes."""
    names = {tensor.name for tensor in model.graph.initializer}
    _save(model, weights.write(model, names, folder, limit), folder / "float32.onnx")


WRITERS: Mapping[str, Callable[[ModelProto, Path, int], None]] = {
    "int8": write_int8,
    "float32": write_float32,
}
"""How to write the graphs of a model folder, by the precision that it runs in on CPUs."""


def _save(graph: ModelProto, places: weights.Places, path: Path) -> None:
    weights.link(graph, places)
    onnx.save(graph, path)
    onnx.checker.check_model(path)


def make_int8(coded: ModelProto) -> ModelProto:
    """Return the graph in dynamic int8.

    Activations have one scale a product. Products that narrow have one for each block of each row
    instead, which raised a span's mean cosine with float32 from .9951 to .9982, and the time by a
    sixth. No attention is fused: that was 10% slower, and as close to float32.
    """
    model = onnx.shape_inference.infer_shapes(coded)  # without shapes less is fused
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes: dict[str, NodeProto] = {}  # by their output, since products share what rounds an input
    for node in model.graph.node:
        weight = node.input[1] if node.op_type == "MatMul" else ""
        codes, scales = map(tensors.get, code_names(weight))
        for part in _multiply(node, codes, scales) if codes and scales else [node]:
            nodes.setdefault(part.output[0], part)
    _replace_nodes(model, [*nodes.values()])
    return _fuse(model)


def make_unsigned(int8: ModelProto) -> ModelProto:
    """Return the int8 graph with 128 added to weights of its products, and to their zero points.

    The products are the same integers.
    """
    model = _copy(int8)
    zero_point = numpy_helper.from_array(np.array(128, np.uint8), "unsigned/zero-point")
    model.graph.initializer.append(zero_point)
    nodes: list[NodeProto] = []
    for node in model.graph.node:
        if node.op_type in ZERO_POINTS:
            inputs, position = list(node.input), ZERO_POINTS[node.op_type]
            nodes.extend(_add_128(inputs[1], unsigned := f"{inputs[1]}/unsigned"))
            inputs.extend([""] * (position + 1 - len(inputs)))
            inputs[1], inputs[position] = unsigned, zero_point.name
            node.input[:] = inputs
        nodes.append(node)
    _replace_nodes(model, nodes)
    return model


def make_float16(coded: ModelProto) -> ModelProto:
    """Return the graph with arithmetic in float16; float32 vectors come out as before."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = _copy(coded)
    decoders = [node.name for node in model.graph.node if node.name.endswith(DECODERS)]
    halved: ModelProto = convert_float_to_float16(
        model, keep_io_types=True, node_block_list=decoders
    )
    _skip_needless_casts(halved)
    return halved


def _skip_needless_casts(model: ModelProto) -> None:
    """Let nodes that compute in float32 read the float32 that a node before them computed.

    The converter halves what such nodes give to each other.
    """
    casts = {node.output[0]: node for node in model.graph.node if node.op_type == "Cast"}
    for node in model.graph.node:
        for position, name in enumerate(node.input):
            widened = casts.get(name)
            halved = casts.get(widened.input[0]) if widened else None
            if halved and halved.name.endswith("_cast_to_fp16_node"):
                node.input[position] = halved.input[0]
    makers = {name: number for number, node in enumerate(model.graph.node) for name in node.output}
    sources = {
        number: [makers[name] for name in node.input if name in makers]
        for number, node in enumerate(model.graph.node)
    }  # the converter's casts stand last
    order = TopologicalSorter(sources).static_order()
    _replace_nodes(model, [model.graph.node[number] for number in order])


def _multiply(node: NodeProto, codes: TensorProto, scales: TensorProto) -> Iterator[NodeProto]:
    """Yield the nodes that multiply by coded weights in the place of a product."""
    blocks, rows, columns = codes.dims
    if blocks > 1:
        yield from _multiply_by_blocks(node, codes.name, scales.name, (blocks, rows, columns))
        return
    codes.dims[:], scales.dims[:] = [rows, columns], [columns]
    yield from _multiply_integers(node, codes.name, scales.name)


def _multiply_integers(node: NodeProto, codes: str, scales: str) -> Iterator[NodeProto]:
    values, output = node.input[0], node.output[0]
    rounded, scale, zero = (f"{values}/{name}" for name in ("rounded", "scale", "zero-point"))
    sums, floats, steps = (f"{output}/{name}" for name in ("sums", "floats", "steps"))
    yield _node("DynamicQuantizeLinear", [values], rounded, scale, zero)
    yield _node("MatMulInteger", [rounded, codes, zero], sums)
    yield _node("Cast", [sums], floats, to=TensorProto.FLOAT)
    yield _node("Mul", [scale, scales], steps)
    yield _node("Mul", [floats, steps], output)


def _multiply_by_blocks(
    node: NodeProto, codes: str, scales: str, shape: tuple[int, int, int]
) -> Iterator[NodeProto]:
    """Yield a product whose weight is ``[columns, blocks, rows of a block]``, and its weight."""
    blocks, rows, columns = shape
    turned, turned_scales = f"{codes}/turned", f"{scales}/turned"
    yield _node("Transpose", [codes], turned, perm=[2, 0, 1])
    yield from _add_128(turned, f"{codes}/unsigned")
    yield _node("Transpose", [scales], turned_scales, perm=[2, 0, 1])
    yield _node("Flatten", [turned_scales], f"{scales}/flat")
    yield helper.make_node(
        "MatMulNBits",
        [node.input[0], f"{codes}/unsigned", f"{scales}/flat"],
        node.output,
        name=node.name,
        domain=OPTIMIZED,
        K=blocks * rows,
        N=columns,
        bits=8,
        block_size=rows,
        accuracy_level=COMPUTED_IN_INT8,
    )


def _add_128(codes: str, unsigned: str) -> Iterator[NodeProto]:
    """Yield the nodes that make uint8 of int8."""
    wide, sums = f"{unsigned}/int32", f"{unsigned}/sum"
    offset = numpy_helper.from_array(np.array(128, np.int32))
    yield helper.make_node("Constant", [], [f"{unsigned}/128"], value=offset)
    yield _node("Cast", [codes], wide, to=TensorProto.INT32)
    yield _node("Add", [wide, f"{unsigned}/128"], sums)
    yield _node("Cast", [sums], unsigned, to=TensorProto.UINT8)


def _node(operator: str, inputs: Sequence[str], *outputs: str, **attributes: object) -> NodeProto:
    node: NodeProto = helper.make_node(operator, inputs, outputs, name=outputs[0], **attributes)
    return node


def _replace_nodes(model: ModelProto, nodes: Sequence[NodeProto]) -> None:
    """Give the graph these nodes, without those and the weights that nothing needs."""
    graph = model.graph
    needed = {output.name for output in graph.output}
    kept: list[NodeProto] = []
    for node in reversed(nodes):
        if needed & set(node.output):
            needed.update(node.input)
            kept.append(node)
    tensors = [tensor for tensor in graph.initializer if tensor.name in needed]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(reversed(kept))
    graph.initializer.extend(tensors)


def _fuse(model: ModelProto) -> ModelProto:
    """Return the graph as ONNX Runtime optimizes it, without computing anything of the weights."""
    import onnxruntime

    model.opset_import.append(helper.make_opsetid(OPTIMIZED, 1))
    with TemporaryDirectory() as scratch:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(Path(scratch) / "fused.onnx")
        options.log_severity_level = 3
        onnxruntime.InferenceSession(
            model.SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=["ConstantFolding"],
        )
        fused = onnx.load(options.optimized_model_filepath)
    _remove_news(fused)
    del fused.opset_import[:]
    fused.opset_import.extend(model.opset_import)
    return fused


def _remove_news(model: ModelProto) -> None:
    """Remove attributes that ONNX Runtime 1.22 does not know, all of their default value."""
    for node in model.graph.node:
        for attribute in [*node.attribute]:
            if attribute.name == "weight_prepacked":
                node.attribute.remove(attribute)


def _copy(model: ModelProto) -> ModelProto:
    copied = ModelProto()
    copied.CopyFrom(model)
    return copied
