"""`doctor`: what it says of a sound installation, and of each that is broken on purpose; one broken thing hides no other."""

from __future__ import annotations

import json
import os
import shutil
from collections import namedtuple
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import config, encoder
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.doctor import Check, examine, machine
from hybrid_search.doctor.check import attempt
from hybrid_search.doctor.server import differences
from hybrid_search.encoder import devices
from tests import live
from tests.places import Place, placed
from tests.program import invoke
from tests.tiny import fill

LOCAL = ["python", "packages", "onnxruntime", "device", "cache", "model", "encoder", "store", "index"]
HUSH = "s3cret-of-ours"


def looked(url: str, index: str = "calls", **asked: Any) -> dict[str, Check]:
    return {each.name: each for each in examine(partial(config.settings, url, device="cpu", **asked), index)}


def states(found: dict[str, Check]) -> dict[str, str]:
    """All that is not well."""
    assert all(bool(each.remedy) == (each.state != "ok") for each in found.values())
    return {name: each.state for name, each in found.items() if each.state != "ok"}


def test_a_sound_installation_is_well(sample_url: str) -> None:
    found = looked(sample_url)
    assert list(found) == LOCAL
    assert states(found) == {}
    assert "3.1" in found["python"].found
    assert "CPUExecutionProvider" in found["device"].found
    assert "88 documents" in found["index"].found
    assert "tokens a second" in found["encoder"].found


def test_nothing_is_made_where_nothing_was(tmp_path: Path) -> None:
    assert states(looked(f"embedded:{tmp_path / 'a' / 'b'}")) == {"index": "warning"}
    assert not (tmp_path / "a").exists()


def test_a_damaged_model_is_told_with_both_digests_and_hides_nothing_else(sample_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(encoder.SHIPPED, folder)
    with (folder / "model.onnx").open("r+b") as file:
        file.write(b"damaged")
    found = looked(sample_url, model=folder)
    assert states(found) == {"model": "problem", "encoder": "problem", "index": "problem"}
    assert "SHA-256 starts with" in found["model"].found
    assert list(found) == LOCAL


def test_an_index_of_another_model_is_a_problem(tmp_path: Path) -> None:
    store = EmbeddedBackend(tmp_path)
    fill(store, [{"id": "a", "text": "some words"}])
    found = looked(f"embedded:{tmp_path}")
    assert states(found) == {"index": "problem"}
    assert "'tiny-fingerprint'" in found["index"].found


def test_a_device_that_does_not_run_is_a_problem(sample_url: str) -> None:
    found = {each.name: each for each in examine(partial(config.settings, sample_url, device="tensorrt"), "calls")}
    assert states(found)["device"] == "problem"
    assert "tensorrt" in found["device"].found


def test_settings_that_are_none_are_a_problem_and_the_machine_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_TIMEOUT", "soon")
    found = looked("embedded:store")
    assert list(found) == ["python", "packages", "onnxruntime", "settings"]
    assert states(found) == {"settings": "problem"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    assert states(looked(f"embedded:{tmp_path / 'closed' / 'store'}"))["store"] == "problem"


def test_a_store_that_is_a_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("not a folder")
    assert states(looked(f"embedded:{tmp_path / 'store'}"))["store"] == "problem"


@pytest.mark.parametrize(("free", "state"), [(10**7, "problem"), (10**9, "warning"), (10**10, "ok")])
def test_a_disk_that_is_full_or_nearly_so_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, state: str) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**11, 0, free))
    assert looked(f"embedded:{tmp_path}")["store"].state == state


def test_a_cache_that_cannot_be_written_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("not a folder")
    monkeypatch.setenv("HYBRID_SEARCH_CACHE", str(tmp_path / "cache"))
    (found,) = machine.cache()
    assert (found.state, "HYBRID_SEARCH_CACHE" in found.remedy) == ("warning", True)


@pytest.mark.parametrize(
    ("there", "state"), [({}, "problem"), ({"onnxruntime"}, "ok"), ({"onnxruntime-gpu"}, "ok"), ({"onnxruntime", "onnxruntime-gpu"}, "problem")]
)
def test_one_runtime_and_not_both(monkeypatch: pytest.MonkeyPatch, there: set[str], state: str) -> None:
    monkeypatch.setattr(machine, "_version", lambda name: "1.0" if name in there else None)
    (found,) = machine.runtime()
    assert found.state == state


def test_a_graphics_card_that_idles_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(devices, "offered", lambda: ["CPUExecutionProvider"])
    assert [each.state for each in machine.device("auto")] == ["warning"]
    assert [each.state for each in machine.device("cpu")] == ["ok"]


def test_a_check_that_fails_itself_is_a_finding() -> None:
    def broken() -> Iterator[Check]:
        yield Check("first", "ok", "fine")
        raise ZeroDivisionError("by nothing")

    assert [(each.name, each.state, each.found) for each in attempt("x", broken)] == [
        ("first", "ok", "fine"),
        ("x", "problem", "ZeroDivisionError: by nothing"),
    ]


def test_a_server_that_is_not_there_is_one_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_USERNAME", "me")
    monkeypatch.setenv("HYBRID_SEARCH_PASSWORD", HUSH)
    done = invoke("doctor", "--url", "opensearch+http://127.0.0.1:1", "--device", "cpu", "--json")
    assert done.status == 1
    assert [each["name"] for each in done.json["checks"] if each["state"] == "problem"] == ["server"]
    assert HUSH not in done.out + done.err


def test_the_command_prints_a_line_for_each_and_says_by_its_status_whether_all_is_well(sample_url: str) -> None:
    done = invoke("doctor", "--url", sample_url, "--device", "cpu")
    assert (done.status, len(done.out.splitlines())) == (0, len(LOCAL))
    assert all(line.startswith("ok ") for line in done.out.splitlines())
    broken = invoke("doctor", "--url", sample_url, "--device", "cuda", "--json")
    assert (broken.status, set(broken.json["checks"][0])) == (1, {"name", "state", "found", "remedy"})


def test_fields_that_differ_are_named() -> None:
    wanted = {
        "a": {"type": "keyword"},
        "b": {"type": "text", "analyzer": "english"},
        "c": {"properties": {"v": {"type": "knn_vector", "dimension": 8}}},
    }
    held = {"b": {"type": "text", "analyzer": "standard"}, "c": {"type": "nested", "properties": {"v": {"type": "knn_vector", "dimension": 4}}}}
    assert list(differences(wanted, held, "")) == [
        "a is missing",
        "b has analyzer 'standard' and not 'english'",
        "c has type 'nested' and not 'object'",
        "c.v has dimension 4 and not 8",
    ]
    assert list(differences(wanted, wanted, "")) == []


# on servers


@pytest.fixture(params=live.URLS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with placed(request.param) as there:
        yield there


def test_a_server_is_looked_at_from_its_version_to_its_index(place: Place) -> None:
    found = looked(place.url, place.index)
    assert list(found)[7:] == ["version", *(["plugins"] if "plugins" in found else []), "health", "privileges", "mapping"]
    assert states(found).get("mapping") == "warning"  # there is none yet
    assert invoke("ingest", "--sample", "--index", place.index, "--url", place.url, "--device", "cpu").status == 0
    found = looked(place.url, place.index)
    assert {name: state for name, state in states(found).items() if name != "health"} == {}
    assert "no security" in found["privileges"].found
    assert "88 documents" in found["index"].found


def test_a_mapping_that_was_changed_is_told(place: Place) -> None:
    place.ingest([{"id": "a", "text": "some words"}])
    made = place.asked("GET", f"/{place.index}/_mapping")
    ((name, held),) = made.items()
    body = json.loads(json.dumps(held["mappings"]))
    body["properties"]["source_hash"] = {"type": "text"}
    body["dynamic"] = "true"
    place.asked("DELETE", f"/{name}")
    settings = {"index.knn": True} if "knn_vector" in str(body) else {}
    place.written("PUT", f"/{name}", {"aliases": {place.index: {}}, "mappings": body, "settings": settings})
    found = looked(place.url, place.index)
    assert states(found)["mapping"] == "problem"
    assert "source_hash has type 'text' and not 'keyword'" in found["mapping"].found
    assert "dynamic is not strict" in found["mapping"].found
    assert "'tiny-fingerprint'" in found["index"].found
