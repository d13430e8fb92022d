"""Nothing tells a user to install a stranger's package: pip's name for this project is its own."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid_search.system import DISTRIBUTION, install_command

ROOT = Path(__file__).parents[2]
COMMAND = "hybrid-search"
"""The name of the command, which on PyPI is a stranger's package."""

INSTALLATION = re.compile(
    rf"\b{COMMAND}\s*(\[|[=<>~!]=|[<>]\s*\d)"  # a requirement
    rf"|\b(?:install|download|wheel|require)\s[^\n`;&|]*(?<![\w-]){COMMAND}(?![\w-])"
    rf"|\b(?:version|metadata|distribution|requires|files)\(\s*[\"']{COMMAND}[\"']"
    r"|\bhybrid_search-\d\S*\.(?:whl|tar)"
)


def strings(text: str) -> Iterator[str]:
    """Yield the strings of a program: a message is often in pieces on several lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))


def tracked_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    paths = [ROOT / name for name in listing.split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_the_projects_name_is_that_of_the_messages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    assert set(project["scripts"]) == {COMMAND}
    assert install_command() == f"pip install {DISTRIBUTION}"
    assert install_command("cpu", "ray") == f"pip install '{DISTRIBUTION}[cpu,ray]'"


@pytest.mark.parametrize(
    ("text", "installs"),
    [
        (f"pip install '{COMMAND}[cpu]'", True),
        (f"needs pyarrow: pip install {COMMAND}", True),
        (f"{COMMAND}[gpu] instead", True),
        (f"{COMMAND}==0.1.0", True),
        (f'version("{COMMAND}")', True),
        (f"pip install dist/{COMMAND.replace('-', '_')}-0.1.0-py3-none-any.whl", True),
        (f"pip install '{DISTRIBUTION}[cpu]'", False),
        (f"pip uninstall {COMMAND}", False),
        (f"make install; {COMMAND} ingest", False),
        (f"{COMMAND} ingest calls.jsonl > out", False),
        ("hybrid_search-VERSION.dist-info", False),
    ],
)
def test_what_would_install_the_strangers_package_is_seen(text: str, installs: bool) -> None:
    assert bool(INSTALLATION.search(text)) is installs


def test_no_file_of_the_project_installs_the_strangers_package() -> None:
    paths = tracked_files()
    if not paths:
        pytest.skip("this is no git checkout")
    places = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # the model
            continue
        pieces = [text, *(strings(text) if path.suffix == ".py" else ())]
        if any(INSTALLATION.search(piece) for piece in pieces):
            places.append(path.relative_to(ROOT).as_posix())
    assert places == []


def test_messages_take_the_name_from_one_constant() -> None:
    modules = [
        path
        for folder in ("hybrid_search", "benchmarks", "export", "papers", "tools")
        for path in (ROOT / folder).rglob("*.py")
        if DISTRIBUTION in path.read_text(encoding="utf-8")
    ]
    assert [path.relative_to(ROOT).as_posix() for path in modules] == ["hybrid_search/system.py"]


def test_no_message_of_the_product_sends_its_user_to_what_the_wheel_lacks() -> None:
    """Neither to a module of the workshop, nor to a file or a target of the checkout."""
    absent = re.compile(
        r"python -m (?!hybrid_search)|(?<![\w.])(?:benchmarks|docs|export|papers|tools|tests)[./]\w"
    )
    for path in (ROOT / "hybrid_search").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
                node.value = ast.Constant(None)
        assert [text for text in strings(ast.unparse(tree)) if absent.search(text)] == [], path
