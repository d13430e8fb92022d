"""The models that this project publishes beside the one that ships, as they lie in ``models/``."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from export.package import LARGEST
from hybrid_search.encoder import base, load, model_folder, truncate_encoder
from hybrid_search.search import calibration
from hybrid_search.search.span_search import best_spans

MODELS = Path(__file__).parents[2] / "models"
PROJECTS = sorted(path.parent for path in MODELS.glob("*/pyproject.toml"))
NAMES = [project.name for project in PROJECTS]

CALL = (
    "So I flew in last night. My two suitcases never came out on the belt. "
    "Everybody went home, and I just stood there with a hamster in a box."
)


def find_folder(project: Path) -> Path:
    """Return the model folder of a project, by the entry point that it declares."""
    settings = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ((name, package),) = settings["entry-points"]["hybrid_search.models"].items()
    assert name == settings["name"] == project.name
    return project / str(package)


def test_there_is_a_larger_model() -> None:
    assert "slice-mpnet" in NAMES


def test_the_model_of_several_languages_finds_what_is_meant_in_german() -> None:
    """Of three sentences, the one that asks for a refund is nearest."""
    encoder = truncate_encoder(load(MODELS / "slice-multilingual" / "slice_multilingual"))
    assert "de" in encoder.info.languages
    sentences = ["Wo ist mein Paket?", "Das Wetter ist schön.", "Ich möchte mein Geld zurück."]
    text = "\n".join(sentences)
    for phrase in ("Rückerstattung", "refund request", "remboursement"):
        (best,) = best_spans(encoder, phrase, text, prior=base.span_prior(encoder))
        assert best.text.startswith("Ich möchte mein Geld zurück"), phrase


@pytest.mark.parametrize("project", PROJECTS, ids=NAMES)
def test_it_is_whole_and_has_all_that_a_model_may_have(project: Path) -> None:
    artifact = model_folder.read(find_folder(project))  # compares all files with their digests
    encoder = load(find_folder(project))
    assert artifact.name == project.name
    assert base.span_prior(truncate_encoder(encoder)) is not None
    for spans_by in ("score", "cosine"):
        maps = calibration.load(find_folder(project), "int8", encoder.info.sizes[0], spans_by)
        assert maps != calibration.Calibration()  # what is used where nothing was fitted
    assert max(path.stat().st_size for path in project.rglob("*") if path.is_file()) <= LARGEST


@pytest.mark.parametrize("project", PROJECTS, ids=NAMES)
def test_it_marks_what_is_meant_where_no_word_is_the_same(project: Path) -> None:
    encoder = truncate_encoder(load(find_folder(project)))
    (best,) = best_spans(encoder, "lost luggage", CALL, prior=base.span_prior(encoder))
    assert best.text.startswith("My two suitcases never came out on the belt")
    assert "hamster" not in best.text
