"""Move the weights of a large graph into files beside it, none too large for a Git repository.

ONNX calls them external data: the graph names for each weight a file in its own folder, a position
and a length (https://onnx.ai/onnx/repo-docs/ExternalData.html). ONNX Runtime and the product read
them with the graph.
"""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, numpy_helper
from onnx.external_data_helper import set_external_data

from hybrid_search.encoder.model_folder import DATA

LEAST = 1024
"""Bytes of the smallest weight that is moved. ONNX Runtime computes shapes from smaller ones."""


def split_weights(path: Path, limit: int) -> list[Path]:
    """Move weights of the graph at `path` into data files, if the graph is larger than `limit`.

    Args:
        path: The graph, which is written again if anything is moved.
        limit: Bytes that a file may have.

    Returns:
        The data files in their order; empty if the graph stays as it is.

    Raises:
        SystemExit: If a single weight is larger than `limit`.
    """
    if path.stat().st_size <= limit:
        return []
    model = onnx.load(path)
    number, size, names = 0, limit, []
    for weight in model.graph.initializer:
        weight_size = len(_raw_data(weight))
        if weight_size < LEAST:
            continue
        if weight_size > limit:
            raise SystemExit(
                f"the weight {weight.name} has {weight_size} bytes, and a file may have {limit}:"
                " export the model with --precision stored-int8, or allow larger files"
            )
        if size + weight_size > limit:
            number, size = number + 1, 0
            names.append(DATA.format(number=number))
        set_external_data(weight, location=names[-1])
        size += weight_size
    onnx.save(model, path)
    return [path.with_name(name) for name in names]


def _raw_data(weight: TensorProto) -> bytes:
    """Return the bytes of a weight, as which it is stored from now on."""
    if not weight.HasField("raw_data"):
        weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight), weight.name))
    return bytes(weight.raw_data)
