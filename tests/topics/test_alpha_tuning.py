"""`tune`: the alpha at which queries rank judged documents best."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hybrid_search.client import Client
from hybrid_search.topics.alpha_tuning import (
    ALPHAS,
    average_precision,
    choose_alpha,
    split_documents,
    tune_alpha,
)
from hybrid_search.topics.judgments import Judgment
from hybrid_search.topics.match import Match
from hybrid_search.topics.topic import Topic
from hybrid_search.topics.tuning import read_tuning
from tests.helpers.cli import invoke_cli

TOPICS = [Topic(f"topic {number}", ("a phrase",)) for number in range(6)]
PHRASES = ("money back", "waiting on hold", "cancel my order", "the parcel is late", "thank you")


def judge(topic: str, document: str, answer: str, start: int = 0) -> Judgment:
    return Judgment(topic, "", document, start, start + 5, "hello", answer, "model", "")


def test_what_nobody_judged_is_left_out_of_a_ranking() -> None:
    """Of the judged documents the order is a, x, b: precisions 1/1 and 2/3, and c is not found."""
    ranking = ["a", "unknown", "x", "b"]
    expected = (1 + 2 / 3) / 3
    assert average_precision(ranking, {"a", "b", "c"}, {"x"}) == pytest.approx(expected)
    assert average_precision([], {"a"}, {"x"}) == 0


def test_a_document_with_one_mention_is_right() -> None:
    judgments = [judge("t", "a", "no"), judge("t", "a", "yes", 9), judge("t", "b", "no")]
    assert split_documents("t", [*judgments, judge("other", "c", "yes")]) == ({"a"}, {"b"})


def test_the_alpha_with_the_best_mean_is_chosen_and_of_equal_ones_the_nearest_to_the_default() -> (
    None
):
    precisions = np.full((8, len(ALPHAS)), 0.25)
    assert choose_alpha(precisions).alpha == 0.5
    precisions[:, 7:] = 0.75
    tuned = choose_alpha(precisions)
    assert (tuned.alpha, tuned.average_precision, tuned.default_precision) == (0.7, 0.75, 0.25)
    assert (tuned.interval, tuned.topics) == ((0.7, 0.7), 8)


def test_topics_that_disagree_make_the_interval_wide() -> None:
    precisions = np.zeros((6, len(ALPHAS)))
    precisions[:3, 0] = precisions[3:, -1] = 1
    assert choose_alpha(precisions).interval == (0, 1)


def test_too_few_topics_have_no_alpha() -> None:
    asked: list[tuple[str, float]] = []

    def rank(topic: Topic, alpha: float) -> Sequence[str]:
        asked.append((topic.name, alpha))
        return ["a", "x"] if alpha > 0.25 else ["x", "a"]

    judgments = [
        judge(topic.name, document, answer)
        for topic in TOPICS
        for document, answer in (("a", "yes"), ("x", "no"))
    ]
    of_four = [row for row in judgments if row.topic in {topic.name for topic in TOPICS[:4]}]
    only_right = [row for row in judgments if row.is_mention]
    assert tune_alpha(TOPICS, of_four, rank) is None
    assert tune_alpha(TOPICS, only_right, rank) is None
    asked.clear()
    tuned = tune_alpha(TOPICS, judgments, rank)
    assert tuned is not None
    assert (tuned.alpha, tuned.average_precision) == (0.5, 1.0)
    assert asked == [(topic.name, alpha) for topic in TOPICS for alpha in ALPHAS]


@pytest.fixture
def judged_files(sample: Client, tmp_path: Path) -> tuple[Path, Path]:
    """A file of five topics, and judgments: every second document of a topic has a mention."""
    topics_file, judgments_file = tmp_path / "topics.json", tmp_path / "judgments.jsonl"
    topics = [{"name": text, "phrases": [text], "threshold": 0.01} for text in PHRASES]
    topics_file.write_text(json.dumps(topics))
    matches = list(sample.mine(topics_file))
    judgments_file.write_text("".join(map(format_judgment, number_documents(matches))))
    return topics_file, judgments_file


def number_documents(matches: Sequence[Match]) -> list[tuple[Match, int]]:
    """Return each match with the number of its document among those of its topic."""
    places = sorted({(match.topic, match.id) for match in matches})
    ids = {name: [id_ for topic, id_ in places if topic == name] for name in PHRASES}
    return [(match, ids[match.topic].index(match.id)) for match in matches]


def format_judgment(numbered: tuple[Match, int]) -> str:
    match, number = numbered
    values = {
        name: getattr(match, name)
        for name in ("topic", "phrase", "id", "start", "end", "text", "model")
    }
    answer = "no" if number % 2 else "yes"
    return json.dumps({**values, "answer": answer, "at": "2026-03-01T09:30:00+00:00"}) + "\n"


def test_the_command_says_the_alpha_and_keeps_it(
    sample_url: str, judged_files: tuple[Path, Path]
) -> None:
    topics_file, judgments_file = judged_files
    options = ("--topics", str(topics_file), "--judgments", str(judgments_file))
    ran = invoke_cli("tune", *options, "--url", sample_url)
    assert ran.status == 0
    (line,) = (line for line in ran.stdout.splitlines() if line.startswith("alpha "))
    assert "by 5 topics; 15 more would halve that): average precision 0." in line
    tuning = read_tuning(topics_file.with_name("topics.tuned.json"))
    assert tuning is not None
    assert tuning.alpha is not None
    assert tuning.alpha.topics == 5
    low, high = tuning.alpha.interval
    assert 0 <= low <= tuning.alpha.alpha <= high <= 1
    assert tuning.alpha.average_precision >= tuning.alpha.default_precision
