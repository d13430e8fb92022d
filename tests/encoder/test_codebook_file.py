"""The codebook of a model folder: read in every size, refused when it does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hybrid_search.encoder import base, codebook_file, load, truncate_encoder
from hybrid_search.encoder.model_folder import CODEBOOK, SHIPPED
from hybrid_search.errors import ModelError
from hybrid_search.system import file_digest
from hybrid_search.text import codebook
from tests.helpers.tiny_encoder import TinyEncoder

SIZES = (384, 256, 128, 64)


def write_folder(folder: Path, *, is_named: bool = True, **arrays: NDArray[Any]) -> Path:
    """Write a model's settings and its codebook, which the settings name or do not."""
    settings = json.loads((SHIPPED / "encoder.json").read_text())
    named = {CODEBOOK: "0" * 64} if is_named else {}
    settings |= {"dimension": 4, "sizes": [2], "sha256": {"int8.onnx": "0" * 64, **named}}
    (folder / "encoder.json").write_text(json.dumps(settings))
    np.savez(folder / CODEBOOK, **arrays)  # type: ignore[arg-type]
    return folder


@pytest.mark.parametrize("dimension", [4, 2])
def test_centroids_are_cut_and_have_length_1(tmp_path: Path, dimension: int) -> None:
    centroids = np.array([[127, 0, 9, 9], [30, -40, 127, 0]], np.int8)
    used = codebook_file.load(write_folder(tmp_path, centroids=centroids), dimension)
    cut = centroids[:, :dimension].astype(np.float32)
    expected = cut / np.linalg.norm(cut, axis=1, keepdims=True)
    np.testing.assert_allclose(codebook.turn(used.centroids), expected, atol=1e-6)
    assert codebook.find(used.identity, dimension) is used


def test_the_name_is_that_of_the_centroids_in_every_size(tmp_path: Path) -> None:
    name = codebook_file.find_name(write_folder(tmp_path, centroids=np.ones((3, 4), np.int8)))
    for dimension in (4, 2):
        used = codebook_file.load(tmp_path, dimension)
        assert codebook.find_by_name(name, dimension) is used


def test_a_model_without_the_file_has_the_plain_one(tmp_path: Path) -> None:
    assert codebook_file.load(tmp_path, 8) is codebook.plain(8)
    assert codebook_file.find_name(tmp_path) == "plain"
    assert base.codebook(TinyEncoder()) is codebook.plain(8)


def test_a_codebook_that_the_settings_do_not_name_may_be_of_another_model(tmp_path: Path) -> None:
    write_folder(tmp_path, is_named=False, centroids=np.ones((3, 4), np.int8))
    assert codebook_file.load(tmp_path, 4) is codebook.plain(4)


@pytest.mark.parametrize(
    "arrays",
    [
        {"centroids": np.ones((3, 5), np.int8)},
        {"centroids": np.ones((3, 4), np.float32)},
        {"centroids": np.ones(4, np.int8)},
        {"centroids": np.ones((0, 4), np.int8)},
        {"others": np.ones((3, 4), np.int8)},
    ],
)
def test_an_array_that_does_not_fit_is_refused(tmp_path: Path, arrays: dict[str, Any]) -> None:
    write_folder(tmp_path, **arrays)
    with pytest.raises(ModelError, match=r"codebook\.npz .*copy it again"):
        codebook_file.load(tmp_path, 4)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, centroids=np.ones((3, 4), np.int8))
    (tmp_path / CODEBOOK).write_bytes(b"nonsense")
    with pytest.raises(ModelError, match=r"codebook\.npz cannot be used"):
        codebook_file.load(tmp_path, 4)


def test_an_unknown_codebook_is_told() -> None:
    with pytest.raises(ModelError, match="codebook 00000abc of 8 numbers"):
        codebook.find_by_name("00000abc", 8)


def test_the_shipped_codebook_is_the_one_that_was_exported() -> None:
    digests = json.loads((SHIPPED / "encoder.json").read_text())["sha256"]
    assert digests[CODEBOOK] == file_digest(SHIPPED / CODEBOOK)
    full = load(SHIPPED, "cpu")
    for dimension in SIZES:
        used = base.codebook(truncate_encoder(full, dimension))
        assert used.centroids.shape == (4096, dimension)
        np.testing.assert_allclose(np.linalg.norm(used.centroids, axis=1), 1, atol=1e-5)
