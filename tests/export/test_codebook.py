"""The codebook of a model: centroids lie where words do, and the command writes them."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from export import card, codebook
from hybrid_search import encoder
from hybrid_search.encoder import codebook_file
from hybrid_search.encoder.model_folder import CODEBOOK, SHIPPED
from hybrid_search.system import file_digest
from tests.helpers.tiny_encoder import TinyEncoder

TURNS = [f"word{number} and word{number + 1} are what I say, once more" for number in range(40)]


def write_data(folder: Path) -> Path:
    """Write a few calls of each source; of SGD only one is of training domains alone."""
    calls = [{"turns": [{"text": text}]} for text in TURNS]
    for name in ("calls_taskmaster4", "calls_multiwoz", "calls_sgd"):
        (folder / name).mkdir(parents=True)
        metadata = {"split": "train", "services": ["Hotels_1"]}
        lines = "\n".join(json.dumps({**call, "metadata": metadata}) for call in calls)
        (folder / name / "calls.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    queries = json.dumps({"id": "Hotels.BookRoom", "part": "train"})
    (folder / "calls_sgd" / "queries.jsonl").write_text(queries)
    (folder / "train_triples").mkdir()
    triples = "\n".join(json.dumps({"positive": text}) for text in TURNS)
    (folder / "train_triples" / "qmsum.jsonl.gz").write_bytes(gzip.compress(triples.encode()))
    return folder


def test_centroids_are_the_directions_of_groups_of_words() -> None:
    random = np.random.default_rng(1)
    directions = codebook.scale_rows(random.standard_normal((20, 16)).astype(np.float32))
    noise = 0.02 * random.standard_normal((20, 50, 16)).astype(np.float32)
    vectors = codebook.scale_rows((directions[:, None] + noise).reshape(-1, 16))
    codes = codebook.fit_centroids(vectors, 40, 1, lambda _: None)
    assert codes.shape == (40, 16)
    assert np.abs(codes.astype(int)).max(axis=1).tolist() == [127] * 40
    _, cosines = codebook.find_nearest(vectors, codebook.scale_rows(codes.astype(np.float32)))
    # noise of .02 in 16 numbers is an angle of .08, whose cosine is .997; groups may share
    assert np.mean(cosines > 0.98) > 0.85


def test_a_centroid_without_words_moves_to_the_word_that_is_farthest_off() -> None:
    """Of two words each is a centroid in the end, though both first ones are the same word."""
    vectors = np.array([[1, 0], [1, 0], [1, 0], [0, 1]], np.float32)
    for seed in range(5):
        codes = codebook.fit_centroids(vectors, 2, seed, lambda _: None)
        assert sorted(map(tuple, codes.tolist())) == [(0, 127), (127, 0)]


def test_fewer_words_than_centroids_are_refused() -> None:
    with pytest.raises(SystemExit, match="3 words are too few for 4 centroids"):
        codebook.fit_centroids(np.eye(3, dtype=np.float32), 4, 1, lambda _: None)


def test_the_command_writes_what_the_product_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    settings = json.loads((SHIPPED / "encoder.json").read_text()) | {"dimension": 8, "sizes": []}
    (folder / "encoder.json").write_text(json.dumps(settings))
    (folder / card.FILE).write_text(f"# A model\n\n{card.LIMITS_HEADING}\n")
    monkeypatch.setattr(encoder, "load", lambda *_: TinyEncoder())
    command = ["codebook", "--model", str(folder), "--data", str(write_data(tmp_path / "data"))]
    monkeypatch.setattr(sys, "argv", [*command, "--words", "400", "--centroids", "30"])
    codebook.main()
    content = (folder / CODEBOOK).read_bytes()
    digests = json.loads((folder / "encoder.json").read_text())["sha256"]
    assert digests[CODEBOOK] == file_digest(folder / CODEBOOK)
    assert codebook_file.load(folder, 8).centroids.shape == (30, 8)
    assert "30 centroids" in capsys.readouterr().out
    assert "## Codebook" in (folder / card.FILE).read_text()
    codebook.main()
    assert (folder / CODEBOOK).read_bytes() == content
