"""Williams' test between the measured set-ups of STS-B-Context, and the table of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.quality import stsb_context
from benchmarks.quality.williams import compare
from papers import measured, significance


def write_result(folder: Path, system: str, setups: dict[str, list[float]]) -> None:
    """A result as ``python -m papers --task stsb-context`` leaves it."""
    stored_setups = {
        name: {"rows": len(scores), "scores": stsb_context.pack_scores(scores)}
        for name, scores in setups.items()
    }
    (folder / f"stsb-context_{system}.json").write_text(json.dumps({"setups": stored_setups}))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of ten rows, and the scores of two systems.

    One is as gold but for its last row, the other knows little.
    """
    monkeypatch.setattr(measured, "RESULTS", tmp_path)
    (tmp_path / "stsb-context").mkdir()
    rows = [f"none\tnone\tnone\t{number}" for number in range(10)]
    (tmp_path / stsb_context.FILE).write_text("\n".join(["query\tcontext\ttarget\tscore", *rows]))
    related, unrelated = [*(number / 10 for number in range(9)), 0.0], [0.1, 0.9] * 5
    write_result(
        tmp_path,
        "slice",
        {"single pass": related, "target alone": related, "full context": unrelated},
    )
    write_result(tmp_path, "all-minilm-l6-v2", {"single pass": unrelated[::-1]})
    return tmp_path


def test_every_two_set_ups_are_compared(folder: Path) -> None:
    significance.write(folder, folder)
    result = results.read_result("williams", folder)
    assert list(result["pearson"]) == [
        "slice, single pass",
        "slice, full context",
        "all-minilm-l6-v2, single pass",
    ]
    assert result["rows"] == 10
    assert len(result["pairs"]) == 3  # what is told where the target is is left out
    tested = result["pairs"]["slice, single pass : slice, full context"]
    by_hand = compare(range(10), [*(number / 10 for number in range(9)), 0.0], [0.1, 0.9] * 5)
    assert (tested["t"], tested["p"]) == pytest.approx((by_hand["t"], by_hand["p"]), rel=1e-3)


def test_results_of_another_table_are_not_compared(folder: Path) -> None:
    write_result(folder, "bm25", {"text scores": [0.5, 0.25]})
    with pytest.raises(
        SystemExit, match=r"stsb-context_bm25 has 2 rows and dev\.tsv 10: measure it again"
    ):
        significance.write(folder, folder)
