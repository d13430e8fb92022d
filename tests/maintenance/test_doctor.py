"""Test `doctor` on sound installations, and on some that are broken on purpose."""

from __future__ import annotations

import os
import shutil
import sys
from collections import namedtuple
from collections.abc import Iterator
from functools import partial
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hybrid_search import config, encoder
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.server import mappings
from hybrid_search.encoder import devices
from hybrid_search.maintenance.doctor import Check, examine, machine
from hybrid_search.maintenance.doctor.check import attempt
from hybrid_search.system import DISTRIBUTION
from tests.helpers.cli import invoke_cli, run_cli
from tests.helpers.installed_distribution import install_distribution, install_model_package
from tests.helpers.server_index import RawIndex
from tests.helpers.tiny_encoder import fill_index

LOCAL_CHECKS = [
    "python",
    "distribution",
    "packages",
    "telemetry",
    "onnxruntime",
    "device",
    "model",
    "models",
    "encoder",
    "store",
    "index",
]
PASSWORD = "s3cret-of-ours"


def run_checks(url: str, index: str = "calls", **settings: Any) -> dict[str, Check]:
    return {
        check.name: check
        for check in examine(partial(config.settings, url, device="cpu", **settings), index)
    }


def states_not_ok(checks: dict[str, Check]) -> dict[str, str]:
    """Return the states of the checks that are not ok, each of which must have a remedy."""
    assert all(bool(check.remedy) == (check.state != "ok") for check in checks.values())
    return {name: check.state for name, check in checks.items() if check.state != "ok"}


def test_a_sound_installation_is_well(sample_url: str) -> None:
    checks = run_checks(sample_url)
    assert list(checks) == LOCAL_CHECKS
    assert states_not_ok(checks) == {}
    assert "3.1" in checks["python"].found
    assert "CPUExecutionProvider" in checks["device"].found
    assert "88 documents" in checks["index"].found
    assert "tokens a second" in checks["encoder"].found


def test_nothing_is_made_where_nothing_was(tmp_path: Path) -> None:
    assert states_not_ok(run_checks(f"embedded:{tmp_path / 'a' / 'b'}")) == {"index": "warning"}
    assert not (tmp_path / "a").exists()


def test_a_damaged_model_is_told_with_both_digests_and_hides_nothing_else(
    sample_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(encoder.SHIPPED, folder)
    with (folder / "weights.data").open("r+b") as file:
        file.write(b"damaged")
    checks = run_checks(sample_url, model=folder)
    assert states_not_ok(checks) == {"model": "problem", "encoder": "problem", "index": "problem"}
    assert "SHA-256 starts with" in checks["model"].found
    assert list(checks) == LOCAL_CHECKS


def test_the_model_and_the_distribution_that_offers_it_are_told(
    sample_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    install_distribution(site, "acme-models", "acme-small", "acme_small")
    folder = install_model_package(site, "acme_small")
    monkeypatch.syspath_prepend(str(site))
    checks = run_checks(sample_url, model="acme-small")
    assert states_not_ok(checks) == {}
    assert (
        f"{encoder.SHIPPED.name}, from distribution acme-models, in {folder}"
        in checks["model"].found
    )
    assert checks["models"].found == (
        f"installed: {encoder.SHIPPED.name} (from {DISTRIBUTION}), acme-small (from acme-models)"
    )
    (folder / "encoder.json").unlink()
    checks = run_checks(sample_url)
    assert states_not_ok(checks) == {"models": "warning"}
    assert "distribution acme-models offers the model 'acme-small', but" in checks["models"].found


def test_an_index_of_another_model_is_a_problem(tmp_path: Path) -> None:
    store = EmbeddedBackend(tmp_path)
    fill_index(store, [{"id": "a", "text": "some words"}])
    checks = run_checks(f"embedded:{tmp_path}")
    assert states_not_ok(checks) == {"index": "problem"}
    assert "'tiny-fingerprint'" in checks["index"].found


def test_a_device_that_does_not_run_is_a_problem(sample_url: str) -> None:
    checks = {
        check.name: check
        for check in examine(partial(config.settings, sample_url, device="tensorrt"), "calls")
    }
    assert states_not_ok(checks)["device"] == "problem"
    assert "tensorrt" in checks["device"].found


def test_settings_that_are_none_are_a_problem_and_the_machine_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_TIMEOUT", "soon")
    checks = run_checks("embedded:store")
    assert list(checks) == [*LOCAL_CHECKS[:5], "settings"]
    assert states_not_ok(checks) == {"settings": "problem"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    assert (
        states_not_ok(run_checks(f"embedded:{tmp_path / 'closed' / 'store'}"))["store"] == "problem"
    )


def test_a_store_that_is_a_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("not a folder")
    assert states_not_ok(run_checks(f"embedded:{tmp_path / 'store'}"))["store"] == "problem"


@pytest.mark.parametrize(
    ("free", "state"), [(10**7, "problem"), (10**9, "warning"), (10**10, "ok")]
)
def test_a_disk_that_is_full_or_nearly_so_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, state: str
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**11, 0, free))
    assert run_checks(f"embedded:{tmp_path}")["store"].state == state


@pytest.mark.parametrize(
    ("installed", "state"),
    [
        ({}, "problem"),
        ({"onnxruntime"}, "ok"),
        ({"onnxruntime-gpu"}, "ok"),
        ({"onnxruntime", "onnxruntime-gpu"}, "problem"),
    ],
)
def test_one_runtime_and_not_both(
    monkeypatch: pytest.MonkeyPatch, installed: set[str], state: str
) -> None:
    def version(name: str) -> str:
        if name in installed:
            return "1.0"
        raise PackageNotFoundError

    monkeypatch.setattr(machine, "version", version)
    (check,) = machine.runtime()
    assert check.state == state


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A folder of packages in which another distribution has files in ``hybrid_search``."""
    folder = tmp_path / "site"
    metadata = folder / "hybrid_search-0.0.15.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Name: hybrid_search\nVersion: 0.0.15\n")
    (metadata / "top_level.txt").write_text("hybrid_search\n")
    return folder


def test_another_distribution_of_the_same_package_is_a_problem(
    stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(stranger))
    (check,) = machine.distribution()
    assert (check.state, check.remedy) == (
        "problem",
        f"pip uninstall hybrid-search {DISTRIBUTION}, then install {DISTRIBUTION}",
    )
    assert "hybrid-search is installed and has files in hybrid_search" in check.found


def test_the_doctor_runs_where_another_distribution_replaced_the_root_module(
    stranger: Path,
) -> None:
    source, package = Path(config.__file__).parent, stranger / "hybrid_search"
    package.mkdir()
    for path in (*source.glob("[!_]*"), source / "__main__.py"):
        (package / path.name).symlink_to(path)
    (package / "_mappings").symlink_to(mappings.FOLDER)  # where a wheel has them
    (package / "__init__.py").touch()
    env = {**os.environ, "PYTHONPATH": str(stranger)}
    result = run_cli("doctor", "--url", "memory:", "--device", "cpu", "--json", env=env)
    problems = [check for check in result.json["checks"] if check["state"] == "problem"]
    assert [check["name"] for check in problems] == ["distribution"]
    assert result.status == 1


def test_a_root_module_that_another_distribution_took_with_it_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "find_spec", lambda name: ModuleSpec(name, None))
    (check,) = machine.distribution()
    assert (check.state, "__init__.py is missing" in check.found) == ("problem", True)


@pytest.mark.parametrize(
    ("variable", "value", "library"),
    [(config.ONNX_RUNTIME_SWITCH, "0", "ONNX Runtime"), (config.RAY_SWITCH, "1", "Ray")],
)
def test_a_library_that_may_report_to_its_makers_is_told(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, library: str
) -> None:
    monkeypatch.setenv(variable, value)
    (check,) = machine.telemetry()
    assert (check.state, check.found) == ("warning", f"may be sent to the makers of {library}")
    assert variable in check.remedy


def test_an_onnx_runtime_that_was_imported_before_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(config.ONNX_RUNTIME_SWITCH, "")
    monkeypatch.setitem(sys.modules, "onnxruntime", ModuleType("onnxruntime"))
    config.disable_telemetry()
    (check,) = machine.telemetry()
    assert (check.state, check.remedy) == (
        "warning",
        f"set {config.ONNX_RUNTIME_SWITCH}=1 before the process starts",
    )


def test_a_graphics_card_that_idles_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(devices, "list_providers", lambda: ["CPUExecutionProvider"])
    assert [check.state for check in machine.device("auto")] == ["warning"]
    assert [check.state for check in machine.device("cpu")] == ["ok"]


def test_a_check_that_fails_itself_is_a_finding() -> None:
    def failing_checks() -> Iterator[Check]:
        yield Check("first", "ok", "fine")
        raise ZeroDivisionError("by nothing")

    assert [(check.name, check.state, check.found) for check in attempt("x", failing_checks)] == [
        ("first", "ok", "fine"),
        ("x", "problem", "ZeroDivisionError: by nothing"),
    ]


def test_a_server_that_is_not_there_is_one_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_USERNAME", "me")
    monkeypatch.setenv("HYBRID_SEARCH_PASSWORD", PASSWORD)
    result = invoke_cli(
        "doctor", "--url", "opensearch+http://127.0.0.1:1", "--device", "cpu", "--json"
    )
    assert result.status == 1
    assert [check["name"] for check in result.json["checks"] if check["state"] == "problem"] == [
        "server"
    ]
    assert PASSWORD not in result.stdout + result.stderr


def test_the_command_prints_a_line_for_each_and_says_by_its_status_whether_all_is_well(
    sample_url: str,
) -> None:
    result = invoke_cli("doctor", "--url", sample_url, "--device", "cpu")
    assert (result.status, len(result.stdout.splitlines())) == (0, len(LOCAL_CHECKS))
    assert all(line.startswith("ok ") for line in result.stdout.splitlines())
    failing = invoke_cli("doctor", "--url", sample_url, "--device", "cuda", "--json")
    assert (failing.status, set(failing.json["checks"][0])) == (
        1,
        {"name", "state", "found", "remedy"},
    )


# on servers


def test_a_server_is_looked_at_from_its_version_to_its_index(place: RawIndex) -> None:
    checks = run_checks(place.url, place.index)
    assert list(checks)[list(checks).index("version") :] == [
        "version",
        *(["plugins"] if "plugins" in checks else []),
        "health",
        "privileges",
        "index",
    ]
    assert states_not_ok(checks).get("index") == "warning"  # there is none yet
    assert (
        invoke_cli(
            "ingest", "--sample", "--index", place.index, "--url", place.url, "--device", "cpu"
        ).status
        == 0
    )
    checks = run_checks(place.url, place.index)
    assert {name: state for name, state in states_not_ok(checks).items() if name != "health"} == {}
    assert "no security" in checks["privileges"].found
    assert "100 documents" in checks["index"].found
