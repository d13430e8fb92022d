"""The phrases of the README, asked of both models of this project."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid_search.encoder import SHIPPED
from tools.first_answers import LARGER, SAME, ask, read_rows

README = Path(__file__).parents[2] / "README.md"
PHRASES = 4


@pytest.mark.export
@pytest.mark.parametrize("model", [SHIPPED, LARGER], ids=["shipped", "larger"])
def test_the_readme_shows_what_is_marked_first(model: Path) -> None:
    rows = read_rows(README)
    assert len(rows) == PHRASES
    larger = [shipped if larger == SAME else larger for _, shipped, larger in rows]
    shown = larger if model == LARGER else [shipped for _, shipped, _ in rows]
    marked = ask(model, [phrase for phrase, _, _ in rows])
    assert [words for words, first in zip(shown, marked, strict=True) if words not in first] == []
