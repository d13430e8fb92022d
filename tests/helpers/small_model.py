"""A model folder of small graphs of random weights, and what they encode."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from export.package import LARGEST
from export.ready_graphs import WRITERS
from hybrid_search.encoder import SHIPPED
from hybrid_search.encoder.onnx import OnnxEncoder
from hybrid_search.text.types import Floats

DIMENSION = 64
TEXTS = ["I would like a refund for my order.", "The river bank was muddy.", "word " * 300]


def make_graph(width: int = 2 * DIMENSION) -> onnx.ModelProto:
    """Make a small graph with all the kinds of operators that a precision changes.

    A word's vector goes through two layers and a head of random weights; `width` is what the first
    layer makes of it.
    """
    random = np.random.default_rng(5)
    weights = {
        "words": random.standard_normal((30522, DIMENSION)),
        "first": random.standard_normal((DIMENSION, width)) / 8,
        "second": random.standard_normal((width, DIMENSION)) / 8,
        "head": random.standard_normal((DIMENSION, DIMENSION)) / 8,
    }
    nodes = [
        helper.make_node("Gather", ["words", "input_ids"], ["embedded"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
        helper.make_node("Mul", ["embedded", "column"], ["masked"]),
        helper.make_node("MatMul", ["masked", "first"], ["hidden"]),
        helper.make_node("Tanh", ["hidden"], ["bent"]),
        helper.make_node("MatMul", ["bent", "second"], ["turned"]),
        helper.make_node("MatMul", ["turned", "head"], ["token_vectors"]),
    ]
    ids, mask = (
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask")
    )
    output = helper.make_tensor_value_info(
        "token_vectors", TensorProto.FLOAT, ["batch", "tokens", DIMENSION]
    )
    initializers = [
        numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()
    ]
    initializers.append(numpy_helper.from_array(np.array([-1]), "last"))
    return helper.make_model(
        helper.make_graph(nodes, "small", [ids, mask], [output], initializers),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )


def make_model_folder(
    folder_path: Path,
    precision: str = "int8",
    graph: onnx.ModelProto | None = None,
    limit: int = LARGEST,
) -> Path:
    """Make a model folder as an export in `precision` does, with files of at most `limit` bytes."""
    folder_path.mkdir()
    WRITERS[precision](graph or make_graph(), folder_path, limit)
    shutil.copy(SHIPPED / "tokenizer.json", folder_path)
    settings = json.loads((SHIPPED / "encoder.json").read_text())
    settings |= {"name": "small", "dimension": DIMENSION, "sizes": []}
    write_settings(folder_path, settings)
    return folder_path


def write_settings(folder_path: Path, settings: dict[str, object]) -> None:
    """Write ``encoder.json`` with the digests of the files that there are."""
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder_path.iterdir())
        if path.name != "encoder.json"
    }
    (folder_path / "encoder.json").write_text(json.dumps({**settings, "sha256": digests}))


def token_vectors(encoder: OnnxEncoder) -> Floats:
    return np.concatenate([encoding.vectors for encoding in encoder.encode(TEXTS)])


def mean_cosine(first: Floats, second: Floats) -> float:
    """Return the mean cosine of the rows."""
    return float(
        (
            (first * second).sum(axis=1)
            / np.linalg.norm(first, axis=1)
            / np.linalg.norm(second, axis=1)
        ).mean()
    )
