"""Restore an encoder's weights from a model folder, so that training can begin with them.

The weights of a folder's graphs are int8 codes, and their products are smoothed (`export.codes`,
`export.smooth`). Names of the float16 graph, and of one in float32, are those of the modules they
come from, so that each weight finds its place again; the result is checked against the folder.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import torch
from transformers import AutoConfig, AutoModel

from export import check
from export.codes import decode_weights
from export.graph import TokenVectors
from export.training.model import SpanEncoder
from hybrid_search.encoder.model_folder import CONFIG, read_settings

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
    precision = "float32" if "float32" in read_settings(folder).precisions else "float16"
    weights = read_weights(onnx.load(folder / f"{precision}.onnx"))
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
            " from the folder of weights that it was exported from"
        )
    body.load_state_dict(weights, strict=False)
    check.parity(TokenVectors(body, head).eval(), folder)
    SpanEncoder(body, head).save(out, folder)


def read_weights(graph_model: onnx.ModelProto) -> Weights:
    """Return the weights in a graph by the names of their modules; ``head`` is that of the head.

    The weights of a product have the name of the node that multiplies, and are transposed there.
    """
    graph = graph_model.graph
    tensors = decode_weights(graph_model)
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


def _module_name(node: str) -> str:
    """Return the name of the weight that a product multiplies by.

    ``/encoder/encoder/layer.0/output/dense/MatMul`` is ``encoder.layer.0.output.dense.weight``.
    """
    path = node.strip("/").split("/")[:-1]
    return ".".join([*path[1:], "weight"]) if path else "head"
