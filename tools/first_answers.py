"""Find the words that both models mark first for the phrases of the README's table."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hybrid_search import connect
from hybrid_search.encoder import SHIPPED
from hybrid_search.ingest.sources.files import SAMPLE
from hybrid_search.search.result import Result

ROOT = Path(__file__).parents[1]
LARGER = ROOT / "models" / "slice-mpnet" / "slice_mpnet"
HEAD = "| asked |"
SAME = "the same"

INT8_TOLERANCE = 0.02
"""Between processors: int8 moves a span's cosine by up to 0.017 (docs/watching.md)."""


def read_rows(page: Path) -> list[tuple[str, str, str]]:
    """Return the phrases in the table of a page, each with the words that both models mark."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", _read_table(page), re.MULTILINE)
    return rows[2:]  # without the head and the line below it


def ask(model: Path, phrases: Sequence[str]) -> list[list[str]]:
    """Return what a model marks in the first hits of the bundled sample, for each phrase.

    Hits whose scores are as near to the best as those of different processors may all be first.
    """
    calls = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    with (
        tempfile.TemporaryDirectory() as folder,
        connect(f"embedded:{folder}", model=model) as client,
    ):
        client.ingest(calls, index="calls")
        return [_list_first(client.query(phrase, index="calls")) for phrase in phrases]


def _list_first(result: Result) -> list[str]:
    best = result.hits[0].score
    return [hit.spans[0].text for hit in result.hits if best - hit.score <= INT8_TOLERANCE]


def rewrite(page: Path) -> None:
    """Write the words that both models mark today into the table of a page."""
    phrases = [phrase for phrase, _, _ in read_rows(page)]
    table = _read_table(page)
    head = table.splitlines()[:2]
    rows = [
        f"| {phrase} | {shipped} | {SAME if larger == shipped else larger} |"
        for phrase, (shipped, *_), (larger, *_) in zip(
            phrases, ask(SHIPPED, phrases), ask(LARGER, phrases), strict=True
        )
    ]
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace(table, "\n".join([*head, *rows])), encoding="utf-8")


def _read_table(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    return text[text.index(HEAD) :].partition("\n\n")[0]
