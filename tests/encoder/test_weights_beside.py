"""Model folders whose weights lie in files beside the graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from export import stored
from export.split import split_weights
from hybrid_search.encoder import model_folder
from hybrid_search.encoder.onnx import OnnxEncoder
from hybrid_search.errors import ModelError
from tests.helpers.small_model import make_graph, make_model_folder, token_vectors

WIDTH = 256
LIMIT = 1_960_000
"""Bytes of a file. The table of 30,522 words has 1,953,408, so that the rest goes into another."""

PRECISIONS = ("float32", "float16", "int8")


def write_whole(path: Path) -> None:
    onnx.save(make_graph(WIDTH), path.with_name("float32.onnx"))
    stored.write_int8(path.with_name("float32.onnx"), path)
    path.with_name("float32.onnx").unlink()


def write_split(path: Path) -> None:
    write_whole(path)
    assert len(split_weights(path, LIMIT)) > 1


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return make_model_folder(tmp_path / "whole", "stored-int8", write_whole)


@pytest.fixture
def split(tmp_path: Path) -> Path:
    return make_model_folder(tmp_path / "split", "stored-int8", write_split)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_vectors_are_those_of_the_graph_in_one_file(
    whole: Path, split: Path, tmp_path: Path, precision: str
) -> None:
    vectors, expected = (
        token_vectors(OnnxEncoder(folder, "cpu", precision=precision, cache=tmp_path))
        for folder in (split, whole)
    )
    np.testing.assert_array_equal(vectors, expected)


def test_no_file_is_larger_than_the_limit(split: Path) -> None:
    sizes = {path.name: path.stat().st_size for path in split.glob("model*")}
    assert set(sizes) >= {"model.onnx", "model-1.data", "model-2.data"}
    assert max(sizes.values()) <= LIMIT


def test_a_graph_within_the_limit_stays_one_file(whole: Path) -> None:
    before = (whole / "model.onnx").read_bytes()
    assert split_weights(whole / "model.onnx", len(before)) == []
    assert (whole / "model.onnx").read_bytes() == before


def test_a_weight_larger_than_a_file_may_be_is_refused(whole: Path) -> None:
    with pytest.raises(SystemExit, match="and a file may have 5000"):
        split_weights(whole / "model.onnx", 5000)


def test_weights_that_are_damaged_or_missing_are_noticed(split: Path) -> None:
    path = split / "model-2.data"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"model-2\.data is damaged"):
        model_folder.read(split)
    path.unlink()
    with pytest.raises(ModelError, match=r"model-2\.data is missing"):
        model_folder.read(split)


def test_graphs_of_other_weights_are_not_taken_from_the_cache(split: Path, whole: Path) -> None:
    """The graph beside the weights may be the same file for other weights."""
    artifact, other = model_folder.read(split), model_folder.read(whole)
    changed = artifact.model_copy(update={"sha256": {**artifact.sha256, "model-2.data": "0" * 64}})
    digests = {artifact.graph_digest, changed.graph_digest, other.graph_digest}
    assert len(digests) == 3
    assert other.graph_digest == other.sha256["model.onnx"]
