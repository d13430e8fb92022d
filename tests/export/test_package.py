"""Packing a model folder: the project that is written, and the folders that are refused."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from pathlib import Path

import pytest

from export import card, package
from hybrid_search.encoder import SHIPPED, find_model
from hybrid_search.encoder.installed_models import GROUP
from hybrid_search.encoder.model_folder import read
from tests.helpers.installed_distribution import install_distribution

PACKAGE = SHIPPED.name.replace("-", "_")
RECIPES = sorted((Path(__file__).parents[2] / "export" / "recipes").glob("*.toml"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The shipped model folder, by symbolic links."""
    folder = tmp_path / "model"
    shutil.copytree(SHIPPED, folder, copy_function=os.symlink)
    return folder


def change_settings(model: Path, **changed: object) -> None:
    path = model / "encoder.json"
    settings = json.loads(path.read_text())
    path.unlink()
    path.write_text(json.dumps({**settings, **changed}))


def refusal_message(*arguments: str) -> str:
    with pytest.raises(SystemExit) as refusal:
        package.main(["--out", "project", *arguments])
    assert not Path("project").exists() or not Path("project/pyproject.toml").exists()
    return str(refusal.value)


def test_the_project_offers_the_model_folder_by_its_name(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package.main(
        ["--model", str(model), "--out", "project", "--name", "acme-small", "--version", "2.1"]
    )
    project = tomllib.loads(Path("project/pyproject.toml").read_text())["project"]
    assert (project["name"], project["version"]) == ("acme-small", "2.1")
    assert project["license"] == "MIT"
    assert project["entry-points"] == {GROUP: {"acme-small": "acme_small"}}
    assert Path("project/LICENSE").read_text() == (SHIPPED / "LICENSE").read_text()
    assert Path("project/README.md").read_text().startswith("# acme-small\n")
    site = Path.cwd() / "project"
    install_distribution(site, "acme-small", "acme-small", "acme_small")
    monkeypatch.syspath_prepend(str(site))
    packed = read(find_model("acme-small"))
    assert (packed.name, packed.sha256) == ("acme-small", read(SHIPPED).sha256)


def test_the_files_of_the_model_are_packed_and_nothing_else(model: Path) -> None:
    (model / ".hidden").write_text("")
    (model / "folder").mkdir()
    package.main(["--model", str(model), "--out", "project"])
    names = {path.name for path in Path("project", PACKAGE).iterdir()}
    model_files = {path.name for path in SHIPPED.iterdir()}
    assert names == model_files - {"README.md", "LICENSE"} | {"__init__.py"}


def test_a_packed_model_can_be_packed_again(model: Path) -> None:
    package.main(["--model", str(model), "--out", "first"])
    folder = Path("first", PACKAGE)
    for name in ("README.md", "LICENSE"):
        shutil.copy(f"first/{name}", folder)
    package.main(["--model", str(folder), "--out", "second"])
    assert read(Path("second", PACKAGE)) == read(folder)


def test_a_file_that_is_too_large_is_refused(model: Path) -> None:
    with (model / "weights.bin").open("wb") as file:
        file.truncate(package.LARGEST + package.MEGABYTE)
    message = refusal_message("--model", str(model))
    assert "weights.bin has 96 MB, and a file of a package may have 95: export" in message


@pytest.mark.parametrize("name", ["Slice", "a_b", "-a", "a--b", "a/b", "9lives", ""])
def test_a_name_that_no_distribution_can_have_is_refused(model: Path, name: str) -> None:
    change_settings(model, name=name)
    assert f"{name!r} cannot be the name" in refusal_message("--model", str(model))


def test_a_model_under_the_licence_of_this_project_needs_no_text_of_it(model: Path) -> None:
    (model / "LICENSE").unlink()
    change_settings(model, license="Apache-2.0")
    package.main(["--model", str(model), "--out", "project"])
    assert Path("project/LICENSE").read_text() == package.OWN_LICENSE.read_text()


def test_the_text_of_another_licence_has_to_be_there(model: Path) -> None:
    (model / "LICENSE").unlink()
    assert "LICENSE is missing: put the text of the licence MIT there" in refusal_message(
        "--model", str(model)
    )
    (model / "LICENSE").write_text("Permission is hereby granted")
    package.main(["--model", str(model), "--out", "project"])
    assert Path("project/LICENSE").read_text() == "Permission is hereby granted"


def test_a_model_without_a_card_is_refused(model: Path) -> None:
    (model / "README.md").unlink()
    assert "README.md is missing" in refusal_message("--model", str(model))


def test_a_folder_that_is_not_empty_is_left_as_it_is(model: Path) -> None:
    Path("project").mkdir()
    Path("project/notes").write_text("mine")
    assert "project is not empty" in refusal_message("--model", str(model))
    assert [path.name for path in Path("project").iterdir()] == ["notes"]


def test_a_damaged_model_folder_is_refused(model: Path) -> None:
    (model / "tokenizer.json").unlink()
    assert "is incomplete: tokenizer.json is missing" in refusal_message("--model", str(model))


def test_the_card_knows_the_licence_of_all_data_that_recipes_train_on() -> None:
    recipes = [tomllib.loads(path.read_text(encoding="utf-8")) for path in RECIPES]
    stages = [stage for recipe in recipes for stage in recipe.get("stages", [])]
    corpora = {name for stage in stages for name in stage.get("data", {})}
    assert "parallel_turns" in corpora
    assert sorted(corpora - card.LICENSES.keys()) == []
