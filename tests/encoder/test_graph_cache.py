"""The cache of graphs in other precisions: made on first use, checked, remade if damaged."""

from __future__ import annotations

import hashlib
import logging
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from export import stored
from hybrid_search import connect
from hybrid_search.encoder.devices import PROVIDERS, Device
from hybrid_search.encoder.graph_cache import _hold_lock
from hybrid_search.encoder.model_folder import read
from hybrid_search.encoder.onnx import OnnxEncoder
from hybrid_search.encoder.precisions import choose
from hybrid_search.encoder.quantization import saturates
from hybrid_search.errors import HybridSearchError, MissingExtraError, ModelError, UsageError
from tests.helpers.cli import invoke_cli, run_cli
from tests.helpers.small_model import (
    DIMENSION,
    make_graph,
    make_model_folder,
    mean_cosine,
    token_vectors,
)

MIN_COSINES = {"float32": 0.999999, "float16": 0.99999, "int8": 0.999}
"""The lowest accepted mean cosine of a token's vector with that of the float32 graph.

With these random weights int8 gave .9999.
"""


@pytest.fixture(scope="module")
def float32_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder that has float32 only."""
    return make_model_folder(
        tmp_path_factory.mktemp("models") / "whole",
        "float32",
        lambda path: onnx.save(make_graph(), path),
    )


@pytest.fixture(scope="module")
def model(float32_folder: Path) -> Path:
    """A model folder of the same weights, stored so that it can run in any precision."""
    return make_model_folder(
        float32_folder.parent / "stored",
        "stored",
        lambda path: stored.write(float32_folder / "model.onnx", path),
    )


def cached_graphs(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.onnx"))


def count_makings(caplog: pytest.LogCaptureFixture) -> int:
    return sum(record.getMessage().startswith("making") for record in caplog.records)


@pytest.mark.parametrize("precision", MIN_COSINES)
def test_every_precision_gives_the_vectors_of_the_graph_that_it_came_from(
    model: Path, float32_folder: Path, tmp_path: Path, precision: str
) -> None:
    encoder = OnnxEncoder(model, "cpu", precision=precision, cache=tmp_path)
    assert (encoder.precision, encoder.info.precision) == (precision, precision)
    assert encoder.info.fingerprint == OnnxEncoder(float32_folder, "cpu").info.fingerprint
    actual = token_vectors(encoder)
    assert actual.dtype == np.float32
    assert (
        mean_cosine(actual, token_vectors(OnnxEncoder(float32_folder, "cpu")))
        > MIN_COSINES[precision]
    )


def test_the_precisions_are_what_they_are_called(
    model: Path, float32_folder: Path, tmp_path: Path
) -> None:
    """An int8 graph takes a quarter of float32, a float16 graph half.

    int8 stores weights as codes, by blocks where a product narrows; float16 computes in halves.
    """
    size = (float32_folder / "model.onnx").stat().st_size
    OnnxEncoder(model, "cpu", precision="int8", cache=tmp_path / "int8")
    OnnxEncoder(model, "cpu", precision="float16", cache=tmp_path / "float16")
    graphs = {name: onnx.load(cached_graphs(tmp_path / name)[0]) for name in ("int8", "float16")}
    matrices = {
        (weight.data_type, tuple(weight.dims))
        for weight in graphs["int8"].graph.initializer
        if len(weight.dims) > 1
    }
    assert matrices == {
        (TensorProto.UINT8, (30522, DIMENSION)),  # rows that are taken
        (TensorProto.UINT8 if saturates() else TensorProto.INT8, (DIMENSION, 2 * DIMENSION)),
        (TensorProto.UINT8, (DIMENSION, 1, 2 * DIMENSION)),  # by blocks, here one a channel
        (TensorProto.FLOAT, (DIMENSION, 1)),  # their scales
        (TensorProto.FLOAT, (DIMENSION, DIMENSION)),  # the head
    }
    # a product of integers is fused with what rounds its input and scales what comes out
    products = {"DynamicQuantizeMatMul", "MatMulNBits"}
    assert products < {node.op_type for node in graphs["int8"].graph.node}
    assert {
        weight.data_type for weight in graphs["float16"].graph.initializer if len(weight.dims) == 2
    } == {TensorProto.FLOAT16}
    assert [
        round(size / cached_graphs(tmp_path / name)[0].stat().st_size)
        for name in ("int8", "float16")
    ] == [4, 2]
    assert round(size / (model / "model.onnx").stat().st_size) == 2


@pytest.mark.parametrize(
    ("precision", "shipped", "device", "expected"),
    [
        ("auto", "stored", "cpu", "int8"),
        ("auto", "stored", "cuda", "float16"),
        ("auto", "stored", "tensorrt", "float16"),
        ("float32", "stored", "cuda", "float32"),
        ("float16", "stored", "cpu", "float16"),
        ("auto", "stored-int8", "cpu", "int8"),
        ("auto", "stored-int8", "cuda", "float16"),
        ("auto", "int8", "cuda", "int8"),
        ("int8", "int8", "cpu", "int8"),
        ("auto", "float32", "cpu", "float32"),
    ],
)
def test_the_precision_suits_the_device_where_the_folder_has_the_choice(
    precision: str, shipped: str, device: str, expected: str
) -> None:
    assert choose(precision, shipped, Device(PROVIDERS[device])) == expected


@pytest.mark.parametrize("precision", ["int4", "stored", "fp16", "", "INT8"])
def test_an_unknown_precision_is_refused_with_those_that_are_known(
    model: Path, precision: str
) -> None:
    with pytest.raises(
        UsageError, match=f"{precision!r} is not one of auto, int8, float16, float32"
    ):
        OnnxEncoder(model, "cpu", precision=precision)


def test_a_folder_of_one_precision_runs_in_that_and_says_so_where_another_is_asked_for(
    tmp_path: Path, float32_folder: Path
) -> None:
    assert OnnxEncoder(float32_folder, "cpu", cache=tmp_path).info.precision == "float32"
    with pytest.raises(
        UsageError,
        match=(
            "precision 'int8' was requested, but this model has only float32: use float32 or auto"
        ),
    ):
        OnnxEncoder(float32_folder, "cpu", precision="int8", cache=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_graph_is_made_once_and_then_found(
    model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="hybrid_search.encoder")
    first = token_vectors(OnnxEncoder(model, "cpu", cache=tmp_path))
    (path,) = cached_graphs(tmp_path)
    assert path.stem.endswith(hashlib.sha256(path.read_bytes()).hexdigest())
    written = path.stat().st_mtime_ns
    assert np.array_equal(token_vectors(OnnxEncoder(model, "cpu", cache=tmp_path)), first)
    assert count_makings(caplog) == 1
    assert cached_graphs(tmp_path)[0].stat().st_mtime_ns == written


def test_logging_stays_as_the_program_has_it(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers: list[logging.Handler] = []
    monkeypatch.setattr(logging.getLogger(), "handlers", handlers)
    OnnxEncoder(model, "cpu", precision="int8", cache=tmp_path)
    assert cached_graphs(tmp_path)
    assert handlers == []


def test_what_the_quantizers_say_of_each_node_is_not_logged(
    model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    OnnxEncoder(model, "cpu", precision="int8", cache=tmp_path)
    assert {
        record.name for record in caplog.records if record.name.startswith("onnxruntime")
    } == set()
    assert count_makings(caplog) == 1


def test_another_model_has_a_graph_of_its_own(model: Path, tmp_path: Path) -> None:
    changed = make_graph()
    changed.graph.initializer[1].CopyFrom(
        numpy_helper.from_array(np.eye(DIMENSION, 2 * DIMENSION, dtype=np.float32), "first")
    )

    def write(path: Path) -> None:
        onnx.save(changed, path)
        stored.write(path, path)

    changed_model = make_model_folder(tmp_path / "other", "stored", write)
    first, second = (
        token_vectors(OnnxEncoder(model_folder, "cpu", cache=tmp_path / "cache"))
        for model_folder in (model, changed_model)
    )
    assert len(cached_graphs(tmp_path / "cache")) == 2
    assert mean_cosine(first, second) < 0.5


@pytest.mark.parametrize("damage", ["empty", "half", "a bit"])
def test_a_damaged_graph_is_made_again_and_replaced(
    model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    expected = token_vectors(OnnxEncoder(model, "cpu", cache=tmp_path))
    (path,) = cached_graphs(tmp_path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(
        {"empty": b"", "half": bytes(data[: len(data) // 2]), "a bit": bytes(data)}[damage]
    )
    caplog.set_level(logging.INFO, logger="hybrid_search.encoder")
    caplog.clear()
    assert np.array_equal(token_vectors(OnnxEncoder(model, "cpu", cache=tmp_path)), expected)
    assert count_makings(caplog) == 1
    (path,) = cached_graphs(tmp_path)
    assert path.stem.endswith(hashlib.sha256(path.read_bytes()).hexdigest())


def test_a_copy_that_somebody_made_of_a_damaged_graph_is_left_alone(
    model: Path, tmp_path: Path
) -> None:
    OnnxEncoder(model, "cpu", cache=tmp_path)
    (path,) = cached_graphs(tmp_path)
    path.write_bytes(b"damaged")
    backup = shutil.copy(path, path.with_stem(f"{path.stem}-backup"))
    OnnxEncoder(model, "cpu", cache=tmp_path)
    assert Path(backup).read_bytes() == b"damaged"
    assert len(cached_graphs(tmp_path)) == 2


def test_what_a_killed_process_left_is_in_nobodys_way(model: Path, tmp_path: Path) -> None:
    OnnxEncoder(model, "cpu", cache=tmp_path)
    (path,) = cached_graphs(tmp_path)
    shutil.move(path, path.parent / ".new-left")
    assert len(token_vectors(OnnxEncoder(model, "cpu", cache=tmp_path)))
    assert len(cached_graphs(tmp_path)) == 1


def test_threads_that_want_the_same_graph_at_once_make_it_once(
    model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="hybrid_search.encoder")
    with ThreadPoolExecutor(6) as pool:
        encoders = list(pool.map(lambda _: OnnxEncoder(model, "cpu", cache=tmp_path), range(6)))
    assert {encoder.precision for encoder in encoders} == {"int8"}
    assert count_makings(caplog) == len(cached_graphs(tmp_path)) == 1


def test_processes_that_want_the_same_graph_at_once_get_the_same(
    model: Path, tmp_path: Path
) -> None:
    program = (
        "import logging, sys; from pathlib import Path;"
        "from hybrid_search.encoder.onnx import OnnxEncoder; logging.basicConfig(level=20);"
        "encoder = OnnxEncoder(Path(sys.argv[1]), 'cpu', cache=Path(sys.argv[2]));"
        "print(encoder.encode(['a refund'])[0].vectors.tobytes().hex())"
    )
    command = [sys.executable, "-c", program, str(model), str(tmp_path)]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    assert len({stdout for stdout, _ in outputs}) == 1
    assert sum("making" in stderr for _, stderr in outputs) == len(cached_graphs(tmp_path)) == 1


def test_where_nothing_can_be_kept_it_is_made_for_the_process_with_a_warning(
    model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="hybrid_search.encoder")
    (tmp_path / "file").write_text("no folder")  # root may write anywhere, but not below a file
    expected = token_vectors(OnnxEncoder(model, "cpu", cache=tmp_path))
    caplog.clear()
    for _ in range(2):
        assert np.array_equal(
            token_vectors(OnnxEncoder(model, "cpu", cache=tmp_path / "file" / "cache")), expected
        )
    assert count_makings(caplog) == 1
    warnings = [
        record.getMessage() for record in caplog.records if record.levelno == logging.WARNING
    ]
    assert warnings
    assert all(
        "int8 graph cannot be cached" in warning and "HYBRID_SEARCH_CACHE" in warning
        for warning in warnings
    )


def test_a_cache_that_can_only_be_read_is_read(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container image made with the cache. Root may write anywhere, so writes fail here."""
    OnnxEncoder(model, "cpu", cache=tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert len(token_vectors(OnnxEncoder(model, "cpu", cache=tmp_path)))


def test_without_the_package_onnx_the_extra_is_named_and_float32_runs(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    OnnxEncoder(model, "cpu", precision="float16", cache=tmp_path / "warm")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        MissingExtraError,
        match=(
            r"a float16 graph is made by the package onnx.*hybrid-span-search\[cpu\].*"
            r"precision='float32'"
        ),
    ) as error:
        OnnxEncoder(model, "cpu", precision="float16", cache=tmp_path / "cold")
    assert isinstance(error.value, HybridSearchError)
    assert (
        OnnxEncoder(model, "cpu", precision="float32", cache=tmp_path / "cold").precision
        == "float32"
    )
    assert (
        OnnxEncoder(model, "cpu", precision="float16", cache=tmp_path / "warm").precision
        == "float16"
    )  # what is kept needs no onnx


def test_a_graph_of_which_nothing_can_be_made_is_named(tmp_path: Path) -> None:
    nonsense = make_model_folder(
        tmp_path / "model", "stored", lambda path: path.write_bytes(b"nonsense")
    )
    for precision in ("int8", "float16"):
        with pytest.raises(ModelError, match=rf"model\.onnx cannot be converted to {precision}"):
            OnnxEncoder(nonsense, "cpu", precision=precision, cache=tmp_path / "cache")
    assert not cached_graphs(tmp_path / "cache")


def test_a_weight_that_float16_cannot_hold_is_not_stored(tmp_path: Path) -> None:
    large = make_graph()
    large.graph.initializer[1].CopyFrom(
        numpy_helper.from_array(np.full((DIMENSION, 2 * DIMENSION), 1e5, dtype=np.float32), "first")
    )
    onnx.save(large, tmp_path / "large.onnx")
    with pytest.raises(SystemExit, match="weight first has numbers that float16 cannot hold"):
        stored.write(tmp_path / "large.onnx", tmp_path / "out.onnx")


def test_the_precision_comes_from_the_call_then_from_the_environment(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def client_precision(precision: str | None = None) -> str:
        with connect("memory:", model=model, device="cpu", precision=precision) as client:
            return client.encoder.info.precision

    assert client_precision() == "int8"
    monkeypatch.setenv("HYBRID_SEARCH_PRECISION", "float32")
    assert client_precision() == "float32"
    assert client_precision("float16") == "float16"


def test_graphs_are_kept_where_the_environment_says(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_CACHE", str(tmp_path / "here"))
    OnnxEncoder(model, "cpu")
    (path,) = cached_graphs(tmp_path / "here" / "models")
    assert path.name.startswith(read(model).sha256["model.onnx"][:16])


def test_an_index_of_one_precision_is_asked_in_another_and_the_plan_says_so(
    model: Path, tmp_path: Path
) -> None:
    url = f"embedded:{tmp_path / 'store'}"
    with connect(url, model=model, device="cpu", precision="float32") as client:
        client.ingest(
            [{"id": "a", "text": "I want a refund."}, {"id": "b", "text": "The river was muddy."}]
        )
        float32_result = client.query("a refund")
    with connect(url, model=model, device="cpu") as client:
        result = client.query("a refund")
    assert [hit.id for hit in result] == [hit.id for hit in float32_result]
    assert (result.plan["precision"], result.plan["query_precision"]) == ("float32", "int8")
    assert "query_precision" not in float32_result.plan


def test_the_command_line_says_that_a_graph_is_made_and_only_then(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_CACHE", str(tmp_path / "cache"))
    arguments = (
        "best-spans",
        "refund",
        "--text",
        "I want a refund.",
        "--model",
        str(model),
        "--device",
        "cpu",
        "--json",
    )
    first, again = run_cli(*arguments), run_cli(*arguments)
    assert (first.status, again.status) == (0, 0)
    assert "making the model's int8 graph, once for this machine" in first.stderr
    assert "INFO: made the graph in" in first.stderr
    assert again.stderr == ""
    assert first.json == again.json


def test_a_precision_that_there_is_not_is_an_error_of_use_on_the_command_line(
    float32_folder: Path,
) -> None:
    result = invoke_cli(
        "best-spans",
        "refund",
        "--text",
        "a refund",
        "--model",
        str(float32_folder),
        "--device",
        "cpu",
        "--precision",
        "int8",
    )
    assert "precision 'int8' was requested, but this model has only float32" in result.error


def test_the_lock_of_the_cache_empties_no_file_of_others_through_a_link(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    (tmp_path / "graph.lock").symlink_to(theirs)
    with (
        pytest.raises(OSError, match=r"graph\.lock"),
        _hold_lock(tmp_path / "graph.lock"),
    ):
        pass
    assert theirs.read_text() == "theirs"
