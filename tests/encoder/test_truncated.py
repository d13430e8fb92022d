"""Truncated vectors: the first numbers of the full ones, as many as the index has."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from hybrid_search import connect
from hybrid_search.client import Client
from hybrid_search.encoder import SHIPPED, load, truncate_encoder
from hybrid_search.encoder.model_folder import CALIBRATION
from hybrid_search.errors import ModelError, UsageError
from hybrid_search.search import calibration, phrase_vector
from hybrid_search.text.types import Floats

DOCUMENTS = [
    {"id": "a", "text": "I would like my money back."},
    {"id": "b", "text": "The kettle is cold."},
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the shipped model with the sizes 128, the usual one, and 64."""
    return write_model_folder(tmp_path_factory.mktemp("model"), [128, 64, 384])


def write_model_folder(target: Path, sizes: list[int]) -> Path:
    shutil.copytree(SHIPPED, target, dirs_exist_ok=True)
    path = target / "encoder.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"sizes": sizes}))
    return target


def open_client(model: Path, tmp_path: Path, dimension: int | None = None) -> Client:
    return connect(f"embedded:{tmp_path / 'store'}", model=model, device="cpu", dimension=dimension)


def cosine(a: Floats, b: Floats, size: int) -> float:
    """Return the cosine of the first `size` numbers."""
    a, b = a[:size], b[:size]
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


@pytest.mark.parametrize(("dimension", "size"), [(None, 128), (64, 64), (384, 384)])
def test_an_index_is_of_the_size_that_was_chosen_and_whoever_asks_need_not_know(
    model: Path, tmp_path: Path, dimension: int | None, size: int
) -> None:
    with open_client(model, tmp_path, dimension) as client:
        client.ingest(DOCUMENTS, codes=8)
        assert client.describe().spec.dimension == size
    with open_client(model, tmp_path) as reader:
        hit = reader.query("a refund", size=1, spans=1, spans_by="cosine").hits[0]
        full_encoder = load(model, "cpu")
        query_vector = phrase_vector.query_vector(full_encoder, "a refund")
        # in the same batch, which int8 depends on
        encoding = full_encoder.encode([document["text"] for document in DOCUMENTS])[0]
        start, end = hit.spans[0].start, hit.spans[0].end
        inside = (encoding.offsets[:, 0] >= start) & (encoding.offsets[:, 1] <= end)
        assert hit.id == "a"
        # a norm is off by up to half of a 250th of the lengths' sum, .0025 where it is .8 of that;
        # the rounding of 8 bits adds less than .001
        assert hit.cosine == pytest.approx(
            cosine(encoding.vectors[inside].mean(axis=0), query_vector, size), abs=0.0035
        )


def test_an_index_keeps_its_size_whatever_the_next_client_would_choose(
    model: Path, tmp_path: Path
) -> None:
    with open_client(model, tmp_path, 64) as client:
        client.ingest(DOCUMENTS[:1])
    with open_client(model, tmp_path, 384) as client:
        assert client.ingest(DOCUMENTS).documents == 1
        client.setup()
        assert client.describe().spec.dimension == 64
        assert client.describe().documents == 2


def test_sizes_of_one_model_are_not_compared_with_each_other(model: Path) -> None:
    full_encoder = load(model, "cpu")
    fingerprints = {
        size: truncate_encoder(full_encoder, size).info.fingerprint for size in (64, 128, 384)
    }
    assert len(set(fingerprints.values())) == 3
    assert fingerprints[384] == full_encoder.info.fingerprint
    assert truncate_encoder(full_encoder).info.dimension == 128


def test_a_size_that_the_model_does_not_have_is_named_with_those_that_it_has(
    model: Path, tmp_path: Path
) -> None:
    with (
        open_client(model, tmp_path, 100) as client,
        pytest.raises(
            UsageError, match=r"dimension is 100, but model .* has vectors of 64, 128, 384: use"
        ),
    ):
        client.ingest(DOCUMENTS)


def test_the_variable_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_DIMENSION", "small")
    with pytest.raises(UsageError, match="HYBRID_SEARCH_DIMENSION is 'small'"):
        connect("memory:")


def test_a_model_folder_cannot_promise_more_than_its_vectors_have(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"sizes \[512\] are not all between 1 and dimension 384"):
        load(write_model_folder(tmp_path, [512]), "cpu")


def test_a_calibration_of_a_size_comes_before_that_of_the_precision(tmp_path: Path) -> None:
    fitted = {"int8": {"midpoint": 0.4}, "int8-64": {"midpoint": 0.6}}
    (tmp_path / CALIBRATION).write_text(json.dumps({"precisions": fitted}))
    assert [calibration.load(tmp_path, "int8", size).midpoint for size in (64, 128, None)] == [
        0.6,
        0.4,
        0.4,
    ]
