"""Models by name: the shipped one, and those that installed distributions offer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid_search import connect
from hybrid_search.encoder import SHIPPED, find_model, list_models
from hybrid_search.errors import ModelError
from hybrid_search.system import DISTRIBUTION
from tests.helpers.cli import invoke_cli
from tests.helpers.installed_distribution import install_distribution, install_model_package


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which Python looks for packages."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def install_acme(site: Path) -> Path:
    """Install the model acme-small of the distribution acme-models, and return its folder."""
    install_distribution(site, "acme-models", "acme-small", "acme_small")
    return install_model_package(site, "acme_small")


def rename_model(folder: Path, name: str, fingerprint: str) -> None:
    """Give an installed copy of the shipped model a name and a fingerprint of its own."""
    settings = json.loads((SHIPPED / "encoder.json").read_text())
    (folder / "encoder.json").unlink()
    (folder / "encoder.json").write_text(
        json.dumps({**settings, "name": name, "fingerprint": fingerprint})
    )


def refusal_message(model: str | Path) -> str:
    with pytest.raises(ModelError) as refusal:
        find_model(model)
    return str(refusal.value)


def test_without_a_model_the_shipped_one_is_used() -> None:
    assert find_model(None) == find_model("") == find_model(SHIPPED.name) == SHIPPED


def test_a_model_is_found_by_its_name_and_not_imported(site: Path) -> None:
    folder = install_acme(site)
    assert find_model("acme-small") == folder
    assert [(model.name, model.distribution, model.folder) for model in list_models()] == [
        (SHIPPED.name, DISTRIBUTION, SHIPPED),
        ("acme-small", "acme-models", folder),
    ]


def test_a_package_without_code_and_one_inside_another_are_found(site: Path) -> None:
    install_distribution(site, "acme-models", "acme-small", "acme.models.small")
    folder = install_model_package(site, "acme.models.small")
    (folder / "__init__.py").unlink()
    assert find_model("acme-small") == folder


def test_a_name_means_the_installed_model_and_a_path_the_folder(site: Path) -> None:
    folder = install_acme(site)
    Path("acme-small").mkdir()
    Path("own").mkdir()
    assert find_model("acme-small") == folder
    assert find_model("./acme-small") == Path("acme-small")
    assert find_model(Path("acme-small")) == Path("acme-small")
    assert find_model("own") == Path("own")


def test_an_unknown_name_is_answered_with_those_there_are(site: Path) -> None:
    install_acme(site)
    assert refusal_message("acme-smal") == (
        "there is no model 'acme-smal', neither installed nor as a folder. Installed: "
        f"{SHIPPED.name}, acme-small. Choose one of these, install the package that offers it, or "
        "give the path of a model folder"
    )


@pytest.mark.parametrize("name", ["x" * 5000, "\0", "\udcff"], ids=["long", "null", "surrogate"])
def test_a_name_that_can_be_no_file_is_an_unknown_name(name: str) -> None:
    message = refusal_message(name)
    assert message.startswith("there is no model ")
    assert len(message) < 400
    message.encode()


def test_two_distributions_that_offer_one_name_are_both_named(site: Path) -> None:
    install_acme(site)
    install_distribution(site, "acme-fork", "acme-small", "acme_small")
    assert "'acme-small' is offered by acme-fork and by acme-models: uninstall" in refusal_message(
        "acme-small"
    )


def test_the_name_of_the_shipped_model_is_taken(site: Path) -> None:
    install_distribution(site, "acme-models", SHIPPED.name, "acme_small")
    assert f"is offered by {DISTRIBUTION} and by acme-models" in refusal_message(SHIPPED.name)
    assert find_model(None) == SHIPPED


@pytest.mark.parametrize(
    "package", ["acme_small", "acme_small:folder", "acme.small", "os.path", "json.tool", ".", "a b"]
)
def test_a_package_that_is_missing_names_its_distribution(site: Path, package: str) -> None:
    install_distribution(site, "acme-models", "acme-small", package)
    assert refusal_message("acme-small") == (
        f"distribution acme-models offers the model 'acme-small', but there is no package "
        f"{package!r}: install acme-models again, or give a model folder"
    )


def test_a_package_around_it_that_fails_hides_no_other_model(site: Path) -> None:
    install_acme(site)
    install_distribution(site, "broken", "broken", "broken.model")
    install_model_package(site, "broken.model")
    (site / "broken" / "__init__.py").write_text("raise RuntimeError('broken')")
    assert "there is no package 'broken.model'" in refusal_message("broken")
    assert find_model("acme-small").name == "acme_small"


def test_a_package_that_is_no_model_folder_names_its_distribution(site: Path) -> None:
    folder = install_acme(site)
    (folder / "encoder.json").unlink()
    message = refusal_message("acme-small")
    assert message.startswith("distribution acme-models offers the model 'acme-small', but ")
    assert "is not a model folder: encoder.json is missing" in message


def test_an_index_is_used_with_the_model_that_wrote_it_unless_another_is_chosen(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename_model(install_acme(site), "acme-small", "0123456789abcdef")
    Path("calls.jsonl").write_text('{"id": "a", "text": "I want my money back."}\n')
    Path("more.jsonl").write_text('{"id": "b", "text": "Where is my refund?"}\n')
    store = ("--url", "embedded:store")
    assert invoke_cli("ingest", "calls.jsonl", "--model", "acme-small", *store).status == 0
    assert invoke_cli("ingest", "more.jsonl", *store).json["documents"] == 1
    found = invoke_cli("query", "refund", "--format", "json", *store).json
    assert {hit["id"] for hit in found["hits"]} == {"a", "b"}
    assert found["plan"]["model"] == "acme-small"
    for command in ("verify", "doctor"):
        assert invoke_cli(command, *store).status == 0
    message = "the model of the index, which is installed (HYBRID_SEARCH_MODEL=acme-small), or"
    assert message in invoke_cli("query", "refund", "--model", SHIPPED.name, *store).error
    monkeypatch.setenv("HYBRID_SEARCH_MODEL", SHIPPED.name)
    assert message in invoke_cli("query", "refund", *store).error
    doctor = invoke_cli("doctor", *store)
    assert (doctor.status, message in doctor.stdout) == (1, True)


def test_one_client_searches_indexes_of_several_models(site: Path) -> None:
    rename_model(install_acme(site), "acme-small", "0123456789abcdef")
    calls = [{"id": "a", "text": "I want my money back."}]
    with connect("embedded:store", model="acme-small", device="cpu") as client:
        client.ingest(calls, index="others")
    topics = [{"name": "refund", "phrases": ["money back"], "threshold": 0.01}]
    with connect("embedded:store", device="cpu") as client:
        client.ingest(calls)
        models = []
        for index in ("calls", "others"):
            models.append(client.query("refund", index=index).plan["model"])
            (match,) = client.mine(topics, index=index)
            assert match.text == client.open_document("a", "money back", index=index).spans[0].text
            assert client.similar("money back", index=index, min_cosine=0.1)[0].count == 1
        assert models == [SHIPPED.name, "acme-small"]
