"""The graphs of a model folder: which one runs, and that all have the vectors of float32."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from export.codes import BLOCK
from hybrid_search import connect
from hybrid_search.encoder import precisions
from hybrid_search.encoder.devices import PROVIDERS, Device
from hybrid_search.encoder.onnx import OnnxEncoder
from hybrid_search.errors import ModelError, UsageError
from hybrid_search.text.types import Floats
from tests.helpers.cli import invoke_cli
from tests.helpers.small_model import make_graph, make_model_folder, mean_cosine, token_vectors

WIDTH = 2 * BLOCK
MIN_COSINE = 0.9998
"""The lowest accepted mean cosine of a token's vector with that of the float32 graph.

With these random weights it was .9999 in all precisions.
"""

BOTH = ["int8", "float16"]


@pytest.fixture(scope="module")
def float32_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder that has float32 only."""
    return make_model_folder(
        tmp_path_factory.mktemp("models") / "whole", "float32", make_graph(WIDTH)
    )


@pytest.fixture(scope="module")
def model(float32_folder: Path) -> Path:
    """A model folder of the same weights in int8 and float16."""
    return make_model_folder(float32_folder.parent / "ready", "int8", make_graph(WIDTH))


def vectors_in(folder: Path, precision: str) -> Floats:
    return token_vectors(OnnxEncoder(folder, "cpu", precision=precision))


@pytest.mark.parametrize("precision", BOTH)
def test_every_precision_gives_nearly_the_vectors_of_float32(
    model: Path, float32_folder: Path, precision: str
) -> None:
    encoder = OnnxEncoder(model, "cpu", precision=precision)
    assert (encoder.precision, encoder.info.precision) == (precision, precision)
    assert encoder.info.fingerprint == OnnxEncoder(float32_folder, "cpu").info.fingerprint
    actual, expected = token_vectors(encoder), vectors_in(float32_folder, "auto")
    assert actual.dtype == np.float32
    assert mean_cosine(actual, expected) > MIN_COSINE


def test_the_graph_with_unsigned_weights_runs_where_products_saturate_and_gives_the_same(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_exact, vectors = not precisions.saturates(), []
    for saturates, name in ((False, "int8.onnx"), (True, "int8-unsigned.onnx")):
        monkeypatch.setattr(precisions, "saturates", lambda answer=saturates: answer)
        assert precisions.graph_name("int8") == name
        vectors.append(vectors_in(model, "int8"))
    assert precisions.graph_name("float16") == "float16.onnx"
    if is_exact:
        np.testing.assert_array_equal(vectors[0], vectors[1])


@pytest.mark.parametrize("name", ["int8.onnx", "int8-unsigned.onnx"])
def test_products_are_fused_and_what_they_need_of_the_weights_is_computed_at_loading(
    model: Path, tmp_path: Path, name: str
) -> None:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "loaded.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(model / name), options, providers=["CPUExecutionProvider"])
    loaded = onnx.load(tmp_path / "loaded.onnx", load_external_data=False)
    counts = Counter(node.op_type for node in loaded.graph.node)
    assert (counts["DynamicQuantizeMatMul"], counts["MatMulNBits"]) == (1, 1)
    assert (counts["MatMul"], counts["Transpose"]) == (1, 0)  # the head is not quantized
    assert counts["Cast"] == 2  # the mask, and the rows that are looked up


def test_the_float16_graph_computes_in_halves(model: Path) -> None:
    graph = onnx.shape_inference.infer_shapes(onnx.load(model / "float16.onnx")).graph
    types = {info.name: info.type.tensor_type.elem_type for info in graph.value_info}
    products = [node for node in graph.node if node.op_type == "MatMul"]
    values = {name for node in products for name in node.input}
    assert {types[name] for name in values} == {onnx.TensorProto.FLOAT16}


@pytest.mark.parametrize(
    ("precision", "available", "device", "expected"),
    [
        ("auto", BOTH, "cpu", "int8"),
        ("auto", BOTH, "cuda", "float16"),
        ("auto", BOTH, "tensorrt", "float16"),
        ("float16", BOTH, "cpu", "float16"),
        ("int8", BOTH, "cuda", "int8"),
        ("auto", ["float32"], "cpu", "float32"),
        ("auto", ["float32"], "cuda", "float32"),
    ],
)
def test_the_precision_suits_the_device_where_the_folder_has_the_choice(
    precision: str, available: list[str], device: str, expected: str
) -> None:
    assert precisions.choose(precision, available, Device(PROVIDERS[device])) == expected


@pytest.mark.parametrize("precision", ["int4", "fp16", "", "INT8"])
def test_an_unknown_precision_is_refused_with_those_that_are_known(
    model: Path, precision: str
) -> None:
    message = f"{precision!r} is not one of auto, int8, float16, float32"
    with pytest.raises(UsageError, match=message):
        OnnxEncoder(model, "cpu", precision=precision)


def test_a_precision_that_the_folder_does_not_have_is_refused_with_those_it_has(
    model: Path, float32_folder: Path
) -> None:
    message = "precision 'float32' was requested, but this model has only int8 and float16: use one"
    with pytest.raises(ModelError, match=message):
        OnnxEncoder(model, "cpu", precision="float32")
    result = invoke_cli(
        *("best-spans", "refund", "--text", "a refund", "--model", str(float32_folder)),
        *("--device", "cpu", "--precision", "int8"),
    )
    assert "precision 'int8' was requested, but this model has only float32: use" in result.error


def test_the_precision_comes_from_the_call_then_from_the_environment(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def client_precision(precision: str | None = None) -> str:
        with connect("memory:", model=model, device="cpu", precision=precision) as client:
            return client.encoder.info.precision

    assert client_precision() == "int8"
    monkeypatch.setenv("HYBRID_SEARCH_PRECISION", "float16")
    assert client_precision() == "float16"
    assert client_precision("int8") == "int8"


def test_an_index_of_one_precision_is_asked_in_another_and_the_plan_says_so(
    model: Path, tmp_path: Path
) -> None:
    url = f"embedded:{tmp_path / 'store'}"
    with connect(url, model=model, device="cpu", precision="float16") as client:
        client.ingest(
            [{"id": "a", "text": "I want a refund."}, {"id": "b", "text": "The river was muddy."}]
        )
        float16_result = client.query("a refund")
    with connect(url, model=model, device="cpu") as client:
        result = client.query("a refund")
    assert [hit.id for hit in result] == [hit.id for hit in float16_result]
    assert (result.plan["precision"], result.plan["query_precision"]) == ("float16", "int8")
    assert "query_precision" not in float16_result.plan
