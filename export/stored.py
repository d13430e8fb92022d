"""The graph that ships: float32 arithmetic on weights that are stored as float16.

Half the size, with a Cast to float32 behind each weight. Any ONNX Runtime runs it as it is (the
casts are done once, when it is loaded), and the product makes int8 and float16 of it
(`hybrid_search.encoder.graph_cache`), so that one file serves CPUs and GPUs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

LEAST = 1024
"""The fewest numbers of a weight to be halved.

Smaller ones, such as those of layer normalisation, stay in float32 and cost nothing.
"""


def write(graph: Path, path: Path) -> None:
    """Write the float32 `graph` to `path` with its large weights as float16.

    Raises SystemExit for a weight that float16 cannot hold.
    """
    model = onnx.load(graph)
    casts = list(_halve_weights(model.graph.initializer))
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _halve_weights(weights: Iterator[TensorProto]) -> Iterator[NodeProto]:
    """Yield the casts back to float32 of large weights, which are halved in place.

    The halved weights have other names; the casts have the first names as outputs.

    Raises:
        SystemExit: If float16 cannot hold a weight.
    """
    for weight in weights:
        if weight.data_type != TensorProto.FLOAT or math.prod(weight.dims) < LEAST:
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
