"""Judgements and runs as files: a round trip, trec_eval's order, and another system's run."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.quality import measures, trec
from benchmarks.quality.retrieval import Rankings
from benchmarks.quality.tasks import Query

A, B, C = ("a call", (3, 4)), ("a call", (5,)), ("c#1%", (0,))
RIGHT = {"a call": frozenset([3]), "c#1%": frozenset([0])}
QUERIES = [
    Query("money\tback ", "The Refund", RIGHT),
    Query("a refund", "The Refund", RIGHT),
    Query("rent", "Rent", RIGHT, within="a call"),
]
RANKED = Rankings(
    QUERIES,
    [{A: 1, C: 3}, {A: 1, C: 3}, {B: 2}],
    {way: [[A, B, A, C], [C], []] for way in trec.WAYS},
)

QRELS = """1 0 a 3
1 0 b 1
1 0 c 0
2 0 a 1
3 0 b 1
"""
OURS = """1 Q0 a 1 2 ours
1 Q0 b 2 1 ours
2 Q0 a 1 1 ours
3 Q0 b 1 1 ours
"""
FOREIGN = """1\tQ0\tb\t9\t-0.5\tother system's
1 Q0 c 1 0.25 x
1 Q0 a 2 -0.5 x
2 Q0 b 1 7 x
2 Q0 a 2 7 x
4 Q0 a 1 1 x
""".replace("other system's", "other")


def write_files(folder: Path, **files: str) -> list[Path]:
    paths = [folder / f"{name}.txt" for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.write_text(text)
    return paths


def run_cli(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["trec", *map(str, arguments)])
    trec.main()


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    files = trec.write(tmp_path / "out", "calls", RANKED)
    runs = [
        "calls.bm25.run",
        "calls.spans.run",
        "calls.hybrid_0.5.run",
        "calls.one_vector_a_passage.run",
    ]
    assert [path.name for path in files] == ["calls.qrels", "calls.topics.tsv", *runs]
    first, third = "a%20call#3+4", "c%231%25"
    assert trec.read_qrels(files[0]) == {
        name: {first: 1, third: 3} for name in ("The%20Refund", "The%20Refund#2")
    } | {"Rent": {"a%20call#5": 2}}
    assert trec.read_run(files[4]) == {
        "The%20Refund": [first, "a%20call#5", third],
        "The%20Refund#2": [third],
    }
    assert files[4].read_text().splitlines()[0] == f"The%20Refund Q0 {first} 1 3 hybrid_0.5"
    assert (
        files[1].read_text()
        == "The%20Refund\tmoney back\t\nThe%20Refund#2\ta refund\t\nRent\trent\ta%20call\n"
    )


def test_files_measure_as_what_they_were_written_from(tmp_path: Path) -> None:
    qrels, _, run, *_ = trec.write(tmp_path, "calls", RANKED)
    judged, rankings = trec.read_qrels(qrels), trec.read_run(run)
    expected = measures.evaluate(RANKED.ways["bm25"], RANKED.right)
    assert (
        measures.evaluate(
            [rankings.get(query_id, []) for query_id in judged], list(judged.values())
        )
        == expected
    )
    # the wordings of one question count as one: first .5 of (1 + 3 / 2) / (3 + 1 / log2 3) and of 3
    # / (3 + 1 / log2 3), then half of that
    first = (1 + 3 / 2 + 3) / (3 + 1 / math.log2(3)) / 2
    assert f"| calls.bm25 | {first / 2:.4f} |" in trec.table(qrels, [run])
    assert measures.row(expected, RANKED.groups)["ndcg@10"] == pytest.approx(first / 2, abs=1e-4)


@given(
    st.lists(
        st.tuples(st.text(min_size=1), st.lists(st.integers(0, 12), max_size=3, unique=True)),
        unique_by=str,
    )
)
def test_no_two_ids_become_one_and_none_holds_white_space(
    places: list[tuple[str, list[int]]],
) -> None:
    ids = [trec.place_id((name, tuple(turns))) for name, turns in places]
    assert len({*ids}) == len(ids)
    assert all(id_.split() == [id_] for id_ in ids)
    queries = [Query("", name, {}) for name, _ in places]
    assert len({*trec.query_ids([*queries, *queries])}) == 2 * len(queries)


def test_equal_scores_are_ordered_as_by_trec_eval(tmp_path: Path) -> None:
    qrels, run = write_files(tmp_path, qrels=QRELS, foreign=FOREIGN)
    assert trec.read_run(run) == {"1": ["c", "b", "a"], "2": ["b", "a"], "4": ["a"]}
    judged, rankings = trec.read_qrels(qrels), trec.read_run(run)
    with qrels.open() as first, run.open() as second:
        evaluator = pytrec_eval.RelevanceEvaluator(
            pytrec_eval.parse_qrel(first), {"ndcg_cut.10", "recip_rank", "recall.10"}
        )
        theirs = evaluator.evaluate(pytrec_eval.parse_run(second))
    ours = measures.evaluate(
        [rankings.get(query_id, []) for query_id in judged], list(judged.values())
    )
    for name, measure in (
        ("ndcg@10", "ndcg_cut_10"),
        ("mrr@10", "recip_rank"),
        ("recall@10", "recall_10"),
    ):
        assert ours[name] == pytest.approx(
            [theirs["1"][measure], theirs["2"][measure], 0], abs=1e-6
        )


def test_another_system_s_run_beside_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    qrels, ours, foreign = write_files(tmp_path, qrels=QRELS, ours=OURS, foreign=FOREIGN)
    run_cli(monkeypatch, "--qrels", qrels, "--run", ours, foreign)
    heading, _, *rows = capsys.readouterr().out.splitlines()
    assert heading == (
        "| 3 queries | ndcg@10 | mrr@10 | recall@10 | recall@100"
        " | ndcg@10, 95% | ndcg@10 - first | 95% |"
    )
    # c b a for the first: gains of 1 at rank 2 and 3 at rank 3, of 3 and 1; b a for the second: 1
    # at rank 2; nothing for the third
    first_gain, second_gain = (1 / math.log2(3) + 3 / 2) / (3 + 1 / math.log2(3)), 1 / math.log2(3)
    cells = [row.strip("| ").split(" | ") for row in rows]
    assert cells[0][:6] == ["ours", "1.0000", "1.0000", "1.0000", "1.0000", "1.0000 to 1.0000"]
    assert cells[1][:5] == [
        "foreign",
        f"{(first_gain + second_gain) / 3:.4f}",
        f"{(1 / 2 + 1 / 2) / 3:.4f}",
        f"{2 / 3:.4f}",
        f"{2 / 3:.4f}",
    ]
    # three values drawn three times: all of one kind one time in 27, more often than the 2.5% that
    # are cut off
    assert cells[1][5:] == [
        f"0.0000 to {second_gain:.4f}",
        f"{(first_gain + second_gain) / 3 - 1:+.4f}",
        f"-1.0000 to {second_gain - 1:+.4f}",
    ]


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        (
            QRELS,
            "1 Q0 a 1 2\n",
            r"run.txt, line 1 has 5 fields, and needs 6: query Q0 document rank score tag",
        ),
        (
            QRELS,
            OURS + "1 Q0 a 9 0 x\n",
            r"run.txt, line 5: document a comes a second time for query 1: remove one of the lines",
        ),
        (QRELS, "1 Q0 a 1 high x\n", r"run.txt, line 1: score is 'high', and must be a number"),
        (QRELS, "1 Q0 a 1 nan x\n", r"run.txt, line 1: score is 'nan', and must be a number"),
        (
            "1 0 a 1\n2 0 a 0.5\n",
            OURS,
            r"qrels.txt, line 2: grade is '0.5', and must be a number: query 0 document grade",
        ),
        (
            QRELS,
            "q1 Q0 a 1 1 x\n",
            r"run.txt has none of the judged queries: it has q1, and judged are 1 and so on",
        ),
        ("", OURS, r"it has 1, and judged are nothing and so on"),
    ],
)
def test_a_file_that_is_not_one(tmp_path: Path, qrels: str, run: str, message: str) -> None:
    paths = write_files(tmp_path, qrels=qrels, run=run)
    with pytest.raises(SystemExit, match=message):
        trec.table(paths[0], paths[1:])


def test_a_file_that_is_missing_and_a_command_that_lacks_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match=r"gone.qrels cannot be read: .*No such file"):
        trec.read_qrels(tmp_path / "gone.qrels")
    message = (
        "give --task and --out to write the files of a task, or --qrels and --run to measure runs"
    )
    with pytest.raises(SystemExit, match=message):
        run_cli(monkeypatch, "--task", "medquad", "--run", tmp_path / "run")
