"""What ships here beside others: what can be tested without the others."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import results
from benchmarks.peers import corpus, measure, offline, registry, report, user_lines
from benchmarks.peers.corpus import Corpus
from benchmarks.peers.measure import Site
from benchmarks.peers.registry import PEERS
from benchmarks.peers.types import Answer, Texts
from benchmarks.quality.marks import MarkedText
from benchmarks.quality.tasks import Query

PROGRAM = '''"""A page.

Two lines of it."""

from __future__ import annotations

import library
from benchmarks.peers.types import (
    Answer,
    Texts,
)


# how
def search(
    phrase,  # what for
):
    """Return an answer."""
    text = """one
two"""

    return library.ask(phrase, text)
'''


def test_lines_of_code_are_those_that_a_user_writes() -> None:
    # import library; the three lines of def; the two of the text, and return
    assert user_lines.count_lines(PROGRAM) == 1 + 3 + 2 + 1


def test_every_program_can_be_read_and_its_lines_are_counted() -> None:
    lines = {name: user_lines.count_lines(peer.read_source()) for name, peer in PEERS.items()}
    assert min(lines.values()) > 5
    assert lines["spans"] == lines["spans-opensearch"]


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("socket.connect", (None, ("203.0.113.7", 443))),
        ("socket.connect", (None, ("2001:db8::1", 443, 0, 0))),
        ("socket.getaddrinfo", ("telemetry.example", 443)),
        ("socket.getaddrinfo", (b"telemetry.example", 443)),
    ],
)
def test_a_connection_to_another_machine_is_refused(event: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(offline.ConnectionRefusedOfflineError, match="only this machine"):
        offline.refuse_connection(event, arguments)


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("socket.connect", (None, ("127.0.0.1", 9200))),
        ("socket.connect", (None, ("::1", 9200, 0, 0))),
        ("socket.connect", (None, "/run/a-socket-of-this-machine")),
        ("socket.getaddrinfo", ("localhost", 9200)),
        ("open", ("telemetry.example", "r", 0)),
    ],
)
def test_this_machine_may_be_reached(event: str, arguments: tuple[Any, ...]) -> None:
    offline.refuse_connection(event, arguments)


def test_a_library_that_reports_home_gets_an_error() -> None:
    code = (
        "import os, urllib.request\n"
        "from benchmarks.peers import offline\n"
        "offline.go_offline()\n"
        "assert os.environ['HAYSTACK_TELEMETRY_ENABLED'] == 'False'\n"
        "urllib.request.urlopen('http://203.0.113.7/event', data=b'what was asked', timeout=5)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    assert "ConnectionRefusedOfflineError: a library wanted to connect to '203.0.113.7'" in (
        run.stderr
    )
    assert "what was asked" not in run.stderr.splitlines()[-1]


@pytest.fixture
def small_corpus(calls: list[dict[str, Any]]) -> Corpus:
    passages, places = corpus.cut_passages(calls[:6])
    right = places[passages[0].id]
    query = Query(passages[0].text, "first", {right[0]: frozenset(right[1])})
    inside = Query(passages[0].text, "inside", query.right, within=right[0])
    return Corpus(
        Texts(calls[:6], passages), places, [query, inside], [{right: 1}, {right: 1}], 100
    )


def test_what_ships_here_is_measured_as_every_peer(small_corpus: Corpus, tmp_path: Path) -> None:
    site = Site(tmp_path, None, None)
    measured = measure.measure_search(PEERS["spans"], small_corpus, site, "measured")
    # asked for its own words, a passage is the first
    assert (measured["ndcg@10"], measured["mrr@10"]) == (1.0, 1.0)
    assert measured["passages"] == len(small_corpus.texts.passages)
    assert measured["bytes per 1,000 words"] == 10 * measured["bytes"]  # 100 words
    assert 0 < measured["milliseconds"]["p50"] <= measured["milliseconds"]["p95"]
    assert measured["passages/s"] > 0
    assert measured["passages per CPU s"] > 0
    assert measured["CPU ms of a query"] > 0


def test_what_ships_here_cuts_the_passages_that_the_others_get(
    small_corpus: Corpus, tmp_path: Path
) -> None:
    peer, site = PEERS["spans"], Site(tmp_path, None, None)
    program, texts = peer.load(), small_corpus.texts
    with site.clear_target(peer, "cut") as target:
        searcher = program.build(texts, target)
        answers = program.search(searcher, "the", 1000, None)
        inside = program.search(searcher, "the", 1000, texts.passages[0].document)
    assert {answer.id for answer in answers} == {passage.id for passage in texts.passages}
    assert {answer.id for answer in inside} == {
        passage.id for passage in texts.passages if passage.document == texts.passages[0].document
    }


def test_answers_are_judged_by_their_places(small_corpus: Corpus) -> None:
    first, second = (passage.id for passage in small_corpus.texts.passages[:2])
    judged = measure.judge(small_corpus, [[Answer(first)], [Answer(second), Answer(first)]])
    assert judged["mrr@10"] == (1 + 1 / 2) / 2
    assert judged["ndcg@10"] == pytest.approx((1 + 0.6309) / 2, abs=1e-4)  # 1 / log2(3) = 0.6309


def test_marks_are_the_spans_of_a_peer_or_else_the_passage(tmp_path: Path) -> None:
    text = "Good morning. I want my money back, please. The weather is nice here."
    start, end = text.index("I want"), text.index(", please")
    marked_texts = [MarkedText("I want my money back", text, ((start, end),))]
    site = Site(tmp_path, None, None)
    spans = measure.measure_marks(PEERS["spans"], marked_texts, site, "marks")
    others = measure.measure_marks(PEERS["bm25s"], marked_texts, site, "marks")
    assert spans["offsets"]
    assert spans["iou"]["mean"] > 0.7
    assert not others["offsets"]
    assert others["iou"]["mean"] == pytest.approx(5 / 13, abs=1e-4)  # 5 of all 13 words are right


def test_a_result_that_is_there_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "PEERS", tmp_path)
    assert not report.is_measured("spans", "calls_sgd", 10)
    results.write("spans-calls_sgd", {"documents": 10}, tmp_path)
    results.write("spans-sample", {"texts": 3}, tmp_path)
    assert report.is_measured("spans", "calls_sgd", 10)
    assert report.is_measured("spans", "sample", None)
    assert not report.is_measured("spans", "calls_sgd", 20)  # of fewer documents than are wanted
    assert not report.is_measured("bm25s", "calls_sgd", 10)


@pytest.mark.skipif(
    importlib.util.find_spec("bm25s") is not None,
    reason="bm25s is installed, and would be measured",
)
def test_a_peer_that_is_not_installed_says_so() -> None:
    with pytest.raises(SystemExit, match="bm25s is not installed; make peers installs all peers"):
        registry.PEERS["bm25s"].list_versions()


def test_a_peer_without_a_server_says_what_to_give() -> None:
    command = [sys.executable, "-m", "benchmarks.peers", "--peer", "spans-opensearch"]
    run = subprocess.run(
        [*command, "--set", "sample", "--again", "--server", ""], capture_output=True, text=True
    )
    assert run.returncode == 1
    assert "needs OpenSearch: give --server URL, or run make peers" in run.stderr


def test_tables_have_a_row_for_each_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "PEERS", tmp_path)
    searched = {
        "weights": "the base, by torch",
        "ndcg@10": 0.51234,
        "ndcg@10 interval": [0.4, 0.6],
        "mrr@10": 0.7,
        "milliseconds": {"p50": 12.34, "p95": 20.0},
        "CPU ms of a query": 7.77,
        "passages/s": 1234.5,
        "passages per CPU s": 617.2,
        "bytes per 1,000 words": 45678,
        "lines of code": 14,
        "versions": {"a-library": "1.2"},
    }
    marks = {"offsets": True, "f1": {"mean": 0.7}, "iou": {"mean": 0.6}}
    for name in PEERS:
        for task in corpus.DOCUMENTS:
            results.write(f"{name}-{task}", searched, tmp_path)
        results.write(f"{name}-sample", marks, tmp_path)
    ranking = report.ranking_table().splitlines()
    assert len(ranking) == 2 + len(PEERS)
    assert ranking[2].count("0.512 (0.400-0.600), 0.700") == 3
    costs = report.cost_table().splitlines()
    assert costs[2].startswith("| bm25s | embedded | 0.700 |")
    assert costs[2].endswith("| 12.3 / 20.0 | 7.8 | 1,234, 617 | 45,678 | 14 |")
    assert "**hybrid_search**" in costs[-1]
    assert "a-library 1.2" in report.version_table()
    (tmp_path / "bm25s-squad_dev.json").unlink()
    assert report.ranking_table().splitlines()[2].endswith("| not run |")
