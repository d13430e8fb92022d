"""The phrases of the README, asked of both models of this project."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hybrid_search import connect
from hybrid_search.encoder import SHIPPED
from hybrid_search.ingest.sources.files import SAMPLE

ROOT = Path(__file__).parents[2]
LARGER = ROOT / "models" / "slice-mpnet" / "slice_mpnet"
SAME = "the same"
PHRASES = 4


def read_rows() -> list[tuple[str, str, str]]:
    """Return what is asked in the README, and what each of the models marks first."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text[text.index("| asked |") :].partition("\n\n")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", table, flags=re.MULTILINE)
    return rows[2:]  # without the head and the line below it


@pytest.mark.export
@pytest.mark.parametrize("model", [SHIPPED, LARGER], ids=["shipped", "larger"])
def test_the_readme_shows_what_is_marked_first(tmp_path: Path, model: Path) -> None:
    rows = read_rows()
    assert len(rows) == PHRASES
    calls = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    with connect(f"embedded:{tmp_path / 'store'}", model=model) as client:
        client.ingest(calls, index="calls")
        marked = [
            client.query(phrase, index="calls").hits[0].spans[0].text for phrase, _, _ in rows
        ]
    larger = [shipped if larger == SAME else larger for _, shipped, larger in rows]
    assert marked == (larger if model == LARGER else [shipped for _, shipped, _ in rows])
