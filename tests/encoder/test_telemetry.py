"""A search of private calls talks to nobody.

ONNX Runtime 1.32 and newer would make an id of the device in the user's home, queue events beside
it, and after some seconds try to send them. It does not where a variable says that it runs in CI,
so these tests run processes that have none. `tests/house/test_wheel.py` looks at connections.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from hybrid_search import config
from tests.helpers.cli import run_cli

ROOT = Path(__file__).parents[2]
SWITCH, RAY_SWITCH = config.ONNX_RUNTIME_SWITCH, config.RAY_SWITCH
WORKSHOP = ("benchmarks", "export", "papers")

SEARCH = """
import hybrid_search
with hybrid_search.connect("memory:", device="cpu") as client:
    client.ingest([{"id": "a", "text": "Please send my money back."}])
    assert client.query("refund request").hits[0].id == "a"
"""


@pytest.fixture
def new_user(tmp_path: Path) -> dict[str, str]:
    """The environment of a user whose home is empty."""
    (tmp_path / "user").mkdir()
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "user"), "PYTHONPATH": str(ROOT)}


def run_python(program: str, env: Mapping[str, str]) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, env=env, capture_output=True, text=True, check=True, timeout=120
    ).stdout.strip()


def files_in_home(env: Mapping[str, str]) -> list[str]:
    home = Path(env["HOME"])
    return [path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()]


def test_a_search_leaves_nothing_in_the_home_folder(new_user: dict[str, str]) -> None:
    run_python(SEARCH, new_user)
    assert files_in_home(new_user) == []


def test_the_doctor_leaves_nothing_there_and_says_so(new_user: dict[str, str]) -> None:
    result = run_cli("doctor", "--url", "memory:", "--device", "cpu", env=new_user)
    assert "ok      telemetry: off: nothing is sent" in result.stdout
    assert files_in_home(new_user) == []


@pytest.mark.parametrize("package", ["hybrid_search", *WORKSHOP])
def test_onnx_runtime_is_silent_whichever_package_comes_first(
    new_user: dict[str, str], package: str
) -> None:
    run_python(f"import {package}, onnxruntime", new_user)
    assert files_in_home(new_user) == []


@pytest.mark.parametrize("package", WORKSHOP)
def test_what_trains_and_measures_is_silent_to_hugging_face(
    new_user: dict[str, str], package: str
) -> None:
    program = f"import {package}, os; print(os.environ['HF_HUB_DISABLE_TELEMETRY'])"
    assert run_python(program, new_user) == "1"
    assert run_python(program, {**new_user, "HF_HUB_DISABLE_TELEMETRY": "0"}) == "0"


@pytest.mark.parametrize(("value", "result"), [("0", "0"), ("true", "true"), ("", "1")])
def test_what_the_user_has_set_stays(new_user: dict[str, str], value: str, result: str) -> None:
    program = f"import hybrid_search, os; print(os.environ[{SWITCH!r}])"
    assert run_python(program, {**new_user, SWITCH: value}) == result
