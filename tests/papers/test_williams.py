"""Williams' test of two correlations with the same gold, against a textbook's example and the
closed forms of Student's t.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from scipy import stats

from benchmarks import results
from benchmarks.quality import significance, stsb_context
from benchmarks.quality.williams import compare, probability, statistic


def test_the_example_of_a_textbook() -> None:
    """Howell, "Statistical Methods for Psychology", 6th edition, p. 262: t = 1.36 with 23 degrees
    of freedom, p = .187.
    """
    t = statistic(26, 0.80, 0.72, 0.89)
    assert t == pytest.approx(1.361, abs=5e-4)
    assert probability(t, 23) == pytest.approx(0.187, abs=5e-4)


def test_an_example_worked_out() -> None:
    # |R| = 1 - .16 - .25 - .01 + 2 * .4 * .5 * .1 = .62; 2 * 102 / 100 * .62 = 1.2648; .45^2 * .9^3
    # = .14762; 102 * 1.1 = 112.2
    assert statistic(103, 0.4, 0.5, 0.1) == pytest.approx(
        -0.1 * math.sqrt(112.2 / (1.2648 + 0.147622)), abs=1e-4
    )


def test_turned_round_it_has_the_other_sign() -> None:
    assert statistic(50, 0.7, 0.6, 0.8) == pytest.approx(-statistic(50, 0.6, 0.7, 0.8))


@pytest.mark.parametrize("t", [0.0, 0.5, 1.0, 3.0, 40.0])
def test_student_s_t_with_one_and_two_degrees_of_freedom(t: float) -> None:
    assert probability(t, 1) == pytest.approx(1 - 2 / math.pi * math.atan(t), abs=1e-6)
    assert probability(-t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), abs=1e-6)


def test_with_many_degrees_of_freedom_it_is_nearly_normal() -> None:
    assert probability(1.96, 100_000) == pytest.approx(math.erfc(1.96 / math.sqrt(2)), abs=1e-5)


def test_the_same_measure_twice_does_not_differ() -> None:
    compared = compare([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], [2, 1, 4, 3, 5])
    assert compared["difference"] == compared["t"] == 0
    assert compared["p"] == pytest.approx(1.0)


def test_a_measure_that_follows_gold_is_told_from_one_that_does_not() -> None:
    gold = [math.sin(number) for number in range(200)]
    related = [value + 0.2 * math.sin(7 * number) for number, value in enumerate(gold)]
    unrelated = [value + 2.0 * math.sin(5 * number) for number, value in enumerate(gold)]
    compared = compare(gold, related, unrelated)
    assert compared["first"] > compared["second"]
    assert compared["p"] < 0.001


def test_three_rows_are_too_few() -> None:
    with pytest.raises(ValueError, match="3 rows are too few"):
        compare([1, 2, 3], [1, 2, 3], [3, 2, 1])


@pytest.mark.parametrize("freedom", [3, 23, 1021])
@pytest.mark.parametrize("t", [0.0, 0.5, 1.96, 6.0])
def test_probabilities_are_scipy_s(t: float, freedom: int) -> None:
    assert probability(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), abs=1e-6)


# --- between set-ups ---


def write_result(folder: Path, system: str, setups: dict[str, list[float]]) -> None:
    """A result as ``python -m benchmarks.quality --task stsb-context`` leaves it."""
    stored_setups = {
        name: {"rows": len(scores), "scores": stsb_context.pack_scores(scores)}
        for name, scores in setups.items()
    }
    (folder / f"stsb-context_{system}-0123456789.json").write_text(
        json.dumps({"setups": stored_setups})
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of ten rows, and the scores of two systems: one as gold but for its last row, one
    that knows little.
    """
    monkeypatch.setattr(results, "RESULTS", tmp_path)
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
    result = results.read_newest("williams")
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


def test_the_page_shows_differences_in_both_directions(folder: Path) -> None:
    significance.write(folder, folder)
    page_lines = significance.render_table().splitlines()
    assert (
        page_lines[0]
        == "| Pearson less that of | Pearson | slice, single pass | all-minilm-l6-v2, single pass |"
    )
    # 10 times the scores: their sum is 36, of products 204; 204 - 10 * 4.5 * 3.6 = 42, which is
    # .5361 of sqrt(82.5 * (204 - 10 * 3.6^2))
    assert page_lines[2].startswith("| slice, single pass | 0.536 |  | +0.710 (p ")
    # of ten numbers in turn the second is 1 further on: 5 * .4 = 2 of sqrt(82.5 * 1.6) = .1741, the
    # other way round
    assert page_lines[-1].startswith("| all-minilm-l6-v2, single pass | -0.174 | -0.710 (p ")


def test_results_of_another_table_are_not_compared(folder: Path) -> None:
    write_result(folder, "bm25", {"text scores": [0.5, 0.25]})
    with pytest.raises(
        SystemExit, match=r"stsb-context_bm25 has 2 rows and dev\.tsv 10: measure it again"
    ):
        significance.write(folder, folder)
