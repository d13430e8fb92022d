"""Restore an encoder's weights from a model folder, so that training can begin with them.

A model folder has one graph, whose weights are halved and whose products are smoothed
(`export.stored`, `export.smooth`). Names of the graph are those of the modules they come from, so
that each weight finds its place again; the result is checked against the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from transformers import AutoConfig, AutoModel

from export import check
from export.graph import TokenVectors
from export.training.model import SpanEncoder
from hybrid_search.encoder.model_folder import CONFIG

PREFIX = "encoder."
"""The encoder inside `TokenVectors`."""

Weights = dict[str, torch.Tensor]


def restore(folder: Path, out: Path) -> None:
    """Write the encoder of a model folder to `out`, as `SpanEncoder.save` does.

    Raises:
        SystemExit: If the folder has no configuration, a weight is not found again, or spans get
            other vectors than by the graph.
    """
    if not (folder / CONFIG).is_file():
        raise SystemExit(
            f"{folder} has no {CONFIG}, which tells what kind of encoder it is: export it again,"
            " or name the folder of weights that it was exported from"
        )
    body = AutoModel.from_config(AutoConfig.from_pretrained(folder))
    weights = read_weights(onnx.load(folder / "model.onnx"))
    head = weights.pop("head", None)
    if head is not None and len(head) < head.shape[1]:
        raise SystemExit(
            f"{folder} has vectors of {len(head)} of {head.shape[1]} numbers: training goes on from"
            " a model that was exported without --dimension"
        )
    missing = set(dict(body.named_parameters())) - set(weights)
    missing = {name for name in missing if not name.startswith("pooler.")}
    if missing:
        raise SystemExit(
            f"{folder}: its graph has no weights {', '.join(sorted(missing))}: training goes on"
            " from a model that was exported with --precision stored or float32"
        )
    body.load_state_dict(weights, strict=False)
    check.parity(TokenVectors(body, head).eval(), folder)
    SpanEncoder(body, head).save(out, folder)


def read_weights(graph_model: onnx.ModelProto) -> Weights:
    """Return the weights in a graph by the names of their modules; ``head`` is that of the head.

    The weights of a product have the name of the node that multiplies, and are transposed there.
    """
    graph = graph_model.graph
    tensors = _read_tensors(graph)
    inputs = {node.output[0]: node.input for node in graph.node if node.op_type == "Mul"}
    weights = {
        name.removeprefix(PREFIX): torch.from_numpy(array)
        for name, array in tensors.items()
        if name.startswith(PREFIX)
    }
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in tensors:
            scales = [tensors[name] for name in inputs.get(node.input[0], ()) if name in tensors]
            matrix = tensors[node.input[1]] * (scales[0][:, None] if scales else 1)
            weights[_module_name(node.name)] = torch.from_numpy(matrix.T.copy())
    return weights


def _read_tensors(graph: onnx.GraphProto) -> Mapping[str, np.ndarray]:
    """Return the weights of a graph in float32, by the names that its products read."""
    casts = {node.input[0]: node.output[0] for node in graph.node if node.op_type == "Cast"}
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    return {
        casts.get(name, name): array.astype(np.float32)
        for name, array in arrays.items()
        if array.dtype in (np.float16, np.float32)
    }


def _module_name(node: str) -> str:
    """Return the name of the weight that a product multiplies by.

    ``/encoder/encoder/layer.0/output/dense/MatMul`` is ``encoder.layer.0.output.dense.weight``.
    """
    path = node.strip("/").split("/")[:-1]
    return ".".join([*path[1:], "weight"]) if path else "head"
