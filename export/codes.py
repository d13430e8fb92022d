"""Weights as int8 codes with scales, of which all graphs of a model folder compute theirs.

Behind each weight the graph turns the codes back into float32. What is constant ONNX Runtime
computes once, when it loads the graph; of tables, only the rows that are looked up. A product has a
scale for each column of its weight, or for each block of a column if it narrows: a few inputs of a
feed-forward's second product are far larger than the rest. A table has one for each row. The
product that makes the vectors keeps its weight as float16: it is 1.4% of MiniLM's multiplications,
and in int8 it caused a quarter of the loss.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from hybrid_search.text.types import Floats

BLOCK = 128
"""Numbers that share a scale in the products quantized by blocks.

With 32 they took twice the time and were no more exact.
"""

LEAST = 1024
"""The fewest numbers of a matrix to be kept in a smaller type."""

LARGEST_CODE = 127

SUFFIXES = ("/int8", "/scales", "/float16")
"""How names of codes, of their scales and of halved weights end."""

DECODERS = ("/int8", "/scales", "/float32", "/scaled", "/reshape")
"""How names of nodes end that look up or decode codes."""


def encode_weights(model: ModelProto) -> None:
    """Put codes, or float16, in the place of all large matrices of a float32 graph.

    Raises SystemExit for a weight that float16 cannot hold.
    """
    weights, tables = _find_product_weights(model.graph), _find_tables(model.graph)
    table_names = {table.name for table in tables}
    excluded = table_names | {weight.name for weight in weights}
    casts = list(_halve_weights(model.graph, excluded))
    decoders = [node for weight in weights for node in _encode_weight(model.graph, weight)]
    for table in tables:
        _replace_by_codes(model.graph, table, numpy_helper.to_array(table))
    nodes = [part for node in model.graph.node for part in _look_up(node, table_names)]
    del model.graph.node[:]
    model.graph.node.extend([*casts, *decoders, *nodes])


def decode_weights(model: ModelProto) -> Mapping[str, Floats]:
    """Return the weights of a graph in float32, by the names that its products and tables have."""
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    decoded: dict[str, Floats] = {}
    for name, array in arrays.items():
        weight, _, kind = name.rpartition("/")
        if kind == "int8":
            values = array * arrays[f"{weight}/scales"]
            decoded[weight] = values.reshape(arrays.get(f"{weight}/shape", values.shape))
        elif array.dtype in (np.float16, np.float32) and kind != "scales":
            decoded[weight if kind == "float16" else name] = array.astype(np.float32)
    return decoded


def code_names(weight: str) -> tuple[str, str]:
    """Return the names of a weight's codes and of their scales."""
    return f"{weight}/int8", f"{weight}/scales"


def _halve_weights(graph: GraphProto, excluded: Collection[str]) -> Iterator[NodeProto]:
    """Yield the casts back to float32 of large matrices, which are halved in place.

    The halved weights have other names; the casts have the first names as outputs. Weights whose
    names are in `excluded` stay as they are.

    Raises:
        SystemExit: If float16 cannot hold a weight.
    """
    for weight in _large_matrices(graph):
        if weight.name in excluded:
            continue
        name = weight.name
        with np.errstate(over="ignore"):
            halves = numpy_helper.to_array(weight).astype(np.float16)
        if not np.isfinite(halves).all():
            raise SystemExit(
                f"weight {name} has numbers that float16 cannot hold: use --precision float32"
            )
        weight.CopyFrom(numpy_helper.from_array(halves, f"{name}/float16"))
        yield helper.make_node(
            "Cast", [weight.name], [name], name=f"{name}/cast", to=TensorProto.FLOAT
        )


def _find_product_weights(graph: GraphProto) -> list[TensorProto]:
    """Return the large matrices of products, but for products that make the outputs."""
    outputs = {output.name for output in graph.output}
    names = {
        node.input[1]
        for node in graph.node
        if node.op_type == "MatMul" and not outputs & set(node.output)
    }
    return [weight for weight in _large_matrices(graph) if weight.name in names]


def _find_tables(graph: GraphProto) -> list[TensorProto]:
    """Return the large matrices of which rows are looked up, and that are used in no other way."""
    others = {name for node in graph.node for name in _names_not_looked_up(node)}
    return [weight for weight in _large_matrices(graph) if weight.name not in others]


def _names_not_looked_up(node: NodeProto) -> Sequence[str]:
    is_lookup = node.op_type == "Gather" and not any(
        attribute.name == "axis" and attribute.i for attribute in node.attribute
    )
    return list(node.input[1:] if is_lookup else node.input)


def _large_matrices(graph: GraphProto) -> Iterator[TensorProto]:
    return (
        weight
        for weight in graph.initializer
        if weight.data_type == TensorProto.FLOAT
        and len(weight.dims) == 2
        and math.prod(weight.dims) >= LEAST
    )


def _encode_weight(graph: GraphProto, weight: TensorProto) -> Iterator[NodeProto]:
    """Yield the nodes that make the weight of a product, in whose place its codes are then.

    Codes are ``[blocks, rows of a block, columns]``.
    """
    name, (rows, columns) = weight.name, weight.dims
    block = BLOCK if rows > columns and rows % BLOCK == 0 else rows
    blocks = numpy_helper.to_array(weight).reshape(-1, block, columns)
    codes, scales = _replace_by_codes(graph, weight, blocks)
    shape = numpy_helper.from_array(np.array([rows, columns]), f"{name}/shape")
    graph.initializer.append(shape)
    yield from _decode(codes, scales, f"{name}/blocks")
    yield helper.make_node("Reshape", [f"{name}/blocks", shape.name], [name], f"{name}/reshape")


def _replace_by_codes(graph: GraphProto, weight: TensorProto, values: Floats) -> tuple[str, str]:
    """Put int8 codes of `values` in the place of a weight; those along axis 1 share a scale.

    Returns:
        The names of the codes and of the scales.
    """
    scales = np.abs(values).max(axis=1, keepdims=True) / np.float32(LARGEST_CODE)
    scales[scales == 0] = 1
    codes = np.rint(values / scales).astype(np.int8)
    names = code_names(weight.name)
    weight.CopyFrom(numpy_helper.from_array(codes, names[0]))
    graph.initializer.append(numpy_helper.from_array(scales, names[1]))
    return names


def _look_up(node: NodeProto, tables: Collection[str]) -> Iterator[NodeProto]:
    """Yield the node, or in its place the nodes that decode the rows it looks up in `tables`.

    Nothing is computed of a whole table, so that it stays as small in memory.
    """
    if not node.input or node.input[0] not in tables:
        yield node
        return
    table, indices = node.input
    output = node.output[0]
    codes, scales = code_names(output)
    for name, rows in zip(code_names(table), (codes, scales), strict=True):
        yield helper.make_node("Gather", [name, indices], [rows], rows)
    yield from _decode(codes, scales, output)


def _decode(codes: str, scales: str, output: str) -> Iterator[NodeProto]:
    """Yield the nodes that turn codes into `output`."""
    floats = f"{output}/float32"
    yield helper.make_node("Cast", [codes], [floats], floats, to=TensorProto.FLOAT)
    yield helper.make_node("Mul", [floats, scales], [output], f"{output}/scaled")
