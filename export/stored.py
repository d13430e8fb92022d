"""Graphs that compute in float32 on weights kept in a smaller type, as model folders have them.

Behind each weight the graph turns it back into float32. Any ONNX Runtime runs such a graph as it is
(what is constant is computed once, when it is loaded), and the product makes int8 and float16 of it
(`hybrid_search.encoder.graph_cache`), so that one file serves CPUs and GPUs. There are two kinds:

* `write` keeps weights as float16: half the size.
* `write_int8` keeps those of products and lookups as int8 codes with scales: a quarter of it. When
  the product makes its int8 graph, the codes come out as they are here, but for products that
  narrow, whose blocks it scales otherwise. So int8 loses next to nothing by it; float32 and float16
  lose what rounding the weights costs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from hybrid_search.encoder.quantization import BLOCK
from hybrid_search.text.types import Floats

LEAST = 1024
"""The fewest numbers of a weight to be kept in a smaller type.

Smaller ones, such as those of layer normalisation, stay in float32 and cost nothing.
"""

LARGEST_CODE = 127


def write(graph: Path, path: Path) -> None:
    """Write the float32 `graph` to `path` with its large weights as float16.

    Raises SystemExit for a weight that float16 cannot hold.
    """
    model = onnx.load(graph)
    _save(model, [*_halve_weights(model.graph.initializer), *model.graph.node], path)


def write_int8(graph: Path, path: Path) -> None:
    """Write the float32 `graph` to `path` with the weights of products and lookups as int8.

    A product has a scale for each column, or for each block of a column if it narrows; a lookup has
    one for each row. The product that makes the vectors is left out, as in the int8 graph of the
    product: its weight and all other large ones become float16. Raises SystemExit for a weight that
    float16 cannot hold.
    """
    model = onnx.load(graph)
    weights, tables = _find_product_weights(model.graph), _find_tables(model.graph)
    table_names = {table.name for table in tables}
    excluded = table_names | {weight.name for weight in weights}
    casts = list(_halve_weights(model.graph.initializer, excluded))
    dequantizers = [node for weight in weights for node in _quantize_weight(model.graph, weight)]
    for table in tables:
        _replace_by_codes(model.graph, table, numpy_helper.to_array(table))
    nodes = [part for node in model.graph.node for part in _look_up(node, table_names)]
    _save(model, [*casts, *dequantizers, *nodes], path)


def _save(model: ModelProto, nodes: Sequence[NodeProto], path: Path) -> None:
    """Write the model with these nodes in the place of its own."""
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _halve_weights(
    weights: Iterator[TensorProto], excluded: Collection[str] = ()
) -> Iterator[NodeProto]:
    """Yield the casts back to float32 of large weights, which are halved in place.

    The halved weights have other names; the casts have the first names as outputs. Weights whose
    names are in `excluded` stay as they are.

    Raises:
        SystemExit: If float16 cannot hold a weight.
    """
    for weight in weights:
        if not _is_large(weight) or weight.name in excluded:
            continue
        name = weight.name
        with np.errstate(over="ignore"):
            halves = numpy_helper.to_array(weight).astype(np.float16)
        if not np.isfinite(halves).all():
            raise SystemExit(
                f"weight {name} has numbers that float16 cannot hold:"
                " use --precision float32 or int8"
            )
        weight.CopyFrom(numpy_helper.from_array(halves, f"{name}/float16"))
        yield helper.make_node(
            "Cast", [weight.name], [name], name=f"{name}/cast", to=TensorProto.FLOAT
        )


def _is_large(weight: TensorProto) -> bool:
    return bool(weight.data_type == TensorProto.FLOAT) and math.prod(weight.dims) >= LEAST


def _find_product_weights(graph: GraphProto) -> list[TensorProto]:
    """Return the large matrices that products multiply by, but for those that make the outputs."""
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
    return (weight for weight in graph.initializer if len(weight.dims) == 2 and _is_large(weight))


def _quantize_weight(graph: GraphProto, weight: TensorProto) -> Iterator[NodeProto]:
    """Yield the nodes that make the weight of a product, in whose place its codes are then."""
    name, (rows, columns) = weight.name, weight.dims
    block = BLOCK if rows > columns and rows % BLOCK == 0 else rows
    blocks = numpy_helper.to_array(weight).reshape(-1, block, columns)
    codes, scales = _replace_by_codes(graph, weight, blocks)
    shape = numpy_helper.from_array(np.array([rows, columns]), f"{name}/shape")
    graph.initializer.append(shape)
    yield from _dequantize(codes, scales, f"{name}/blocks")
    yield helper.make_node("Reshape", [f"{name}/blocks", shape.name], [name], f"{name}/reshape")


def _replace_by_codes(graph: GraphProto, weight: TensorProto, values: Floats) -> tuple[str, str]:
    """Put int8 codes of `values` in the place of a weight; those along axis 1 share a scale.

    Returns:
        The names of the codes and of the scales.
    """
    scales = np.abs(values).max(axis=1, keepdims=True) / np.float32(LARGEST_CODE)
    scales[scales == 0] = 1
    codes = np.rint(values / scales).astype(np.int8)
    names = _code_names(weight.name)
    weight.CopyFrom(numpy_helper.from_array(codes, names[0]))
    graph.initializer.append(numpy_helper.from_array(scales, names[1]))
    return names


def _code_names(weight: str) -> tuple[str, str]:
    return f"{weight}/int8", f"{weight}/scales"


def _look_up(node: NodeProto, tables: Collection[str]) -> Iterator[NodeProto]:
    """Yield the node, or if it looks up rows of one of `tables` those that dequantize the rows.

    Nothing is computed of a whole table, so that it stays as small in memory.
    """
    if not node.input or node.input[0] not in tables:
        yield node
        return
    table, indices = node.input
    output = node.output[0]
    codes, scales = _code_names(output)
    for name, rows in zip(_code_names(table), (codes, scales), strict=True):
        yield helper.make_node("Gather", [name, indices], [rows], rows)
    yield from _dequantize(codes, scales, output)


def _dequantize(codes: str, scales: str, output: str) -> Iterator[NodeProto]:
    """Yield the nodes that turn codes into `output`."""
    floats = f"{output}/float32"
    yield helper.make_node("Cast", [codes], [floats], floats, to=TensorProto.FLOAT)
    yield helper.make_node("Mul", [floats, scales], [output], f"{output}/scaled")
