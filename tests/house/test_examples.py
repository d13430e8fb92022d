"""The examples in ``docs/examples``: the notebook runs, and the Dockerfiles start our commands.

``tests/house/test_wheel.py`` runs what the Dockerfiles install.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.house.test_docs import assert_same_output, parse_command
from tools.pages import NOTEBOOKS, read_cell_output, run_notebook

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
PAGE = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_print_what_stands_below_them(
    notebook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")  # a plot is drawn, and shown in no window
    cells = []
    for cell, printed in run_notebook(notebook):
        assert_same_output(printed, read_cell_output(cell))
        cells.append(cell)
    assert any("matplotlib" in "".join(cell["source"]) for cell in cells)


@pytest.mark.parametrize("name", ["serve", "ingest"])
def test_a_dockerfile_starts_its_command_with_options_that_exist(name: str) -> None:
    text = (EXAMPLES / f"{name}.Dockerfile").read_text()
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", text, flags=re.MULTILINE)
    words = json.loads(entry)
    assert words[:2] == ["hybrid-search", name]
    parse_command(" ".join(words))
    assert "USER 1000" in text


def test_the_page_names_every_example() -> None:
    links = set(re.findall(r"\]\(examples/([\w.]+)\)", PAGE))
    assert links == {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    assert "compose.yaml" in PAGE
